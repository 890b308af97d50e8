import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OwnHost } from './support/own-host.ts';
import { readPage, walkPage } from './support/walk-page.ts';

const REDIS = [
  'redis-server --bind 127.0.0.1 10.77.0.1 --requirepass a-long-password --appendonly yes',
  '--appendfsync always --maxmemory-policy noeviction --save "" --daemonize yes >/dev/null',
].join(' ');

test('the tutorial of two hosts works as shown', async (t) => {
  const steps = await readPage('docs/tutorial/two-hosts.md');
  assert.ok(steps.length >= 15, `only ${steps.length} commands found`);
  await using one = await OwnHost.boot('node1.example.com');
  await using two = await OwnHost.boot('node2.example.com');
  await OwnHost.connect([one, '10.77.0.1/24'], [two, '10.77.0.2/24']);
  assert.equal((await one.run(REDIS)).status, 0);
  const hosts = new Map([
    ['node1', one],
    ['node2', two],
  ]);
  const shellOf = (host: string): OwnHost => {
    const shell = hosts.get(host);
    assert.ok(shell, `no host '${host}'`);
    return shell;
  };
  await walkPage(steps, shellOf, { tell: (command) => t.diagnostic(command) });
  for (const host of hosts.values())
    assert.equal((await host.run('systemctl stop gnt-noded')).status, 0);
});
