import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lostSecrets } from '../../../metad/view/lost-secrets.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../support/view-fixture.ts';

const viewOf = (values: Readonly<Record<string, string | null>>) =>
  parseView(
    exampleView({
      osParameters: Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, { value, visibility: 'secret' }]),
      ),
    }),
  );

test('secrets without a value are lost, and the others are not', () => {
  assert.deepEqual(lostSecrets(viewOf({ a: 'x', b: null, c: '' })), ['b']);
});

test('the names of lost secrets fit into a header', () => {
  const names = Array.from({ length: 500 }, (_, index) => `${'n'.repeat(100)}${index}`);
  const lost = lostSecrets(viewOf(Object.fromEntries(names.map((name) => [name, null]))));
  assert.ok(lost.length > 50 && lost.join(',').length <= 8192, String(lost.length));
});
