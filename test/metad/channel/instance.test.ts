import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { RenderedSites } from '../../../metad/channel/rendered-sites.ts';
import { resolveAddress } from '../../../metad/dialects/address.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const address = resolveAddress('ganeti/latest/meta_data.json');
assert.ok(address);

test('an instance that was rendered first is forgotten first, and rendered again to the same bytes', () => {
  const rendered = new RenderedSites(2);
  const [a, b, c] = ['a', 'b', 'c'].map(
    (name) => new Instance(parseView(exampleView({ name })), systemClock, rendered),
  );
  assert.ok(a && b && c);
  const ofA = a.find(address);
  const ofB = b.find(address);
  assert.equal(a.find(address), ofA, 'rendered once');
  const ofC = c.find(address);
  assert.equal(b.find(address), ofB);
  assert.equal(c.find(address), ofC);
  assert.notEqual(a.find(address), ofA);
  assert.deepEqual(a.find(address), ofA);
});

test('an ended instance does not displace a rendered one', () => {
  const rendered = new RenderedSites(1);
  const gone = new Instance(parseView(exampleView()), systemClock, rendered);
  const served = new Instance(parseView(exampleView()), systemClock, rendered);
  gone.find(address);
  gone.end();
  const first = served.find(address);
  gone.find(address);
  assert.equal(served.find(address), first);
});

test('the redacted tree is rendered separately from the guest’s tree, once per view', () => {
  const path = resolveAddress('ganeti/latest/os/parameters.json');
  assert.ok(path);
  const instance = new Instance(parseView(exampleView()), systemClock);
  const shown = instance.findRedacted(path);
  assert.ok(shown);
  assert.equal(instance.findRedacted(path), shown);
  const bodyOf = (found: typeof shown | undefined): string =>
    found?.kind === 'content' ? found.body.toString() : '';
  assert.match(bodyOf(instance.find(path)), /S3CRET/);
  assert.doesNotMatch(bodyOf(shown), /S3CRET|KEY123/);
  instance.replaceView(parseView(exampleView({ revision: 2 })));
  assert.notEqual(instance.findRedacted(path), shown);
});
