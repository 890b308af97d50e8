import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '#shared/clock/clock.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { RenderedSites } from '../../../metad/channel/rendered-sites.ts';
import { REQUEST_TOKENS_PER_ATTRIBUTE } from '../../../metad/config/limits.ts';
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

const created = (changes: Parameters<typeof exampleView>[0] = {}): Instance =>
  new Instance(parseView(exampleView(changes)), systemClock);

test('a leaving guest keeps its bytes in the state, and nothing is added until it stays', () => {
  const instance = created();
  instance.toGuest.push(Buffer.from('down'));
  instance.toHost.push(Buffer.from('up'));
  instance.setPassword('posted');
  assert.equal(instance.isKeptOut(), false);
  const state = instance.leave();
  assert.equal(instance.isKeptOut(), true);
  assert.deepEqual([state.instanceId, state.password], [instance.view.instanceId, 'posted']);
  const textOf = ({ bytes }: typeof state.toGuest) => Buffer.from(bytes, 'base64').toString();
  assert.deepEqual([textOf(state.toGuest), textOf(state.toHost)], ['down', 'up']);
  const push = () => [instance.toGuest, instance.toHost].map((one) => one.push(Buffer.from('x')));
  assert.deepEqual(push(), [false, false]);
  instance.stay();
  assert.equal(instance.isKeptOut(), false);
  assert.deepEqual(push(), [true, true]);
});

test('the state of a guest continues elsewhere: its bytes, their numbers, its token and password', () => {
  const [source, target] = [created(), created()];
  source.toGuest.push(Buffer.from('read'));
  source.toGuest.take();
  source.toGuest.push(Buffer.from('down'));
  const token = source.tokens.create(60);
  source.setPassword('posted');
  target.arrive(source.leave());
  const { bytes, nextOffset } = target.toGuest.take();
  assert.deepEqual([bytes.toString(), nextOffset], ['down', 8]);
  assert.equal(target.password, 'posted');
  assert.equal(target.tokens.isValid(token), true);
});

test('a state without tokens leaves those that the target issued', () => {
  const target = created();
  const token = target.tokens.create(60);
  target.arrive(created().leave());
  assert.equal(target.tokens.isValid(token), true);
});

test('the state of another installation is refused', () => {
  const instanceId = '0c2a1b2c-0000-4000-8000-0000000000ff';
  assert.throws(() => created().arrive(created({ instanceId }).leave()), { code: 'CONFLICT' });
});

test('a password and tokens end with their installation, and not with another view of it', () => {
  const instance = created();
  instance.setPassword('posted');
  const token = instance.tokens.create(60);
  instance.replaceView(parseView(exampleView({ revision: 2 })));
  assert.deepEqual([instance.password, instance.tokens.isValid(token)], ['posted', true]);
  const instanceId = '0c2a1b2c-0000-4000-8000-0000000000ff';
  instance.replaceView(parseView(exampleView({ revision: 3, instanceId })));
  assert.deepEqual([instance.password, instance.tokens.isValid(token)], ['', false]);
});

test('former private values are hidden until another guest starts', () => {
  const instance = created();
  const secret = { value: 'N3W', visibility: 'secret' } as const;
  instance.replaceView(parseView(exampleView({ revision: 2, osParameters: { rootpw: secret } })));
  assert.ok(instance.formerValues.includes('S3CRET'));
  instance.inherit();
  instance.beginAnew();
  assert.deepEqual([instance.formerValues, instance.isInherited], [[], false]);
});

test('a changed attribute of a guest costs as much as many requests, an equal one nothing more', () => {
  const atOnce = 2 * REQUEST_TOKENS_PER_ATTRIBUTE;
  const limits = { ...exampleView().limits, requestsPerSecond: 1, burst: atOnce };
  const instance = new Instance(parseView(exampleView({ limits })), {
    now: () => 0,
    monotonicMs: () => 0,
  });
  for (const value of ['a', 'a', 'a']) instance.setGuestAttribute('space', 'key', value);
  assert.equal(instance.takeRequest(0), 0);
  instance.setGuestAttribute('space', 'key', 'b');
  assert.ok(instance.takeRequest(0) > 0, 'two changes took the whole burst');
});

test('the removal of an attribute costs as much as a change', () => {
  const limits = { ...exampleView().limits, requestsPerSecond: 1 };
  const burst = 2 * REQUEST_TOKENS_PER_ATTRIBUTE;
  const instance = new Instance(parseView(exampleView({ limits: { ...limits, burst } })), {
    now: () => 0,
    monotonicMs: () => 0,
  });
  instance.setGuestAttribute('space', 'key', 'a');
  assert.equal(instance.deleteGuestAttribute('space', 'other'), false);
  assert.equal(instance.takeRequest(0), 0);
  assert.equal(instance.deleteGuestAttribute('space', 'key'), true);
  assert.ok(instance.takeRequest(0) > 0, 'both changes took the whole burst');
});
