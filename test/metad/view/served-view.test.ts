import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { parseView, redactView } from '../../../metad/view/served-view.ts';
import { renderGaneti } from '../../../metad/dialects/ganeti.ts';
import { exampleView, installingView } from '../support/view-fixture.ts';

test('a malformed view is refused with the path of the field and without its value', () => {
  const cases: [unknown, RegExp][] = [
    [
      { ...exampleView(), osParameters: { a: { value: 5, visibility: 'public' } } },
      /osParameters\.a\.value:/,
    ],
    [
      { ...exampleView(), osParameters: { a: { value: 'TOPSECRET', visibility: 'x' } } },
      /osParameters\.a\.visibility:/,
    ],
    [{ ...exampleView(), userData: '!TOPSECRET!' }, /userData:/],
    [{ ...exampleView(), extra: 'TOPSECRET' }, /extra/],
    [{ ...exampleView(), mode: 'install' }, /install:/],
    ['TOPSECRET', /top level/],
    [null, /top level/],
  ];
  for (const [value, expected] of cases) {
    assert.throws(
      () => parseView(value),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'VALIDATION');
        assert.match(error.message, expected);
        assert.doesNotMatch(error.message, /TOPSECRET/);
        return true;
      },
    );
  }
});

test('a channel that is not the communication NIC is refused', () => {
  const view = exampleView();
  view.channel = { ...view.channel, mac: '52:54:00:00:00:99' };
  assert.throws(() => parseView(view), /channel\.mac/);
});

test('printing a view does not show private and secret parameter values', () => {
  const view = parseView(exampleView());
  assert.doesNotMatch(inspect(view, { depth: 10 }), /S3CRET|KEY123/);
  assert.doesNotMatch(JSON.stringify([...view.osParameters]), /S3CRET|KEY123/);
});

test('the redacted view renders public values only', () => {
  const leaf = renderGaneti(redactView(parseView(exampleView()))).get('os/parameters.json');
  assert.equal(leaf?.kind, 'fixed');
  assert.deepEqual(JSON.parse(leaf?.kind === 'fixed' ? leaf.body.toString() : ''), {
    dhcp: ['yes', 'public'],
    hostkey: ['<redacted>', 'private'],
    rootpw: ['<redacted>', 'secret'],
  });
});

test('an operator sees the hooks of cluster and OS, and of the instance their names only', () => {
  const { install } = redactView(parseView(installingView()));
  assert.deepEqual(
    install?.hooks?.map(({ name, content }) => [name, content]),
    [
      ['10-all.yaml', Buffer.from('a: 1').toString('base64')],
      ['own.yaml', ''],
    ],
  );
});

test('a view with two communication NICs is refused', () => {
  const [, channel] = exampleView().nics;
  assert.ok(channel?.communication);
  const view = exampleView();
  assert.throws(() => parseView({ ...view, nics: [...view.nics, channel] }), {
    ...{ code: 'VALIDATION', message: /more than one communication NIC/ },
  });
});

test('an installation needs its plan', () => {
  assert.throws(() => parseView(exampleView({ mode: 'install' })), {
    ...{ code: 'VALIDATION', message: /install: missing/ },
  });
});
