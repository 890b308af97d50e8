import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OwnHost } from './support/own-host.ts';
import { readPage, walkPage } from './support/walk-page.ts';

test('the tutorial of the first OS definition works as shown', async (t) => {
  const steps = await readPage('docs/tutorial/first-os-definition.md');
  assert.ok(steps.length >= 12, `only ${steps.length} commands found`);
  await using host = await OwnHost.boot('node1.example.com');
  assert.equal((await host.run('systemctl start gnt-noded')).status, 0);
  await walkPage(steps, () => host, { tell: (command) => t.diagnostic(command) });
  assert.equal((await host.run('systemctl stop gnt-noded')).status, 0);
});
