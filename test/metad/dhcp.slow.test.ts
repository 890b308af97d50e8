import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { exampleView } from './support/view-fixture.ts';

const view = exampleView();
let lab: ChannelLab;
let guest: Guest;
let directory: string;

before(async () => {
  lab = await ChannelLab.create();
  directory = await mkdtemp(join(tmpdir(), 'gnt-dhcp-test-'));
  guest = await lab.addGuest({ ...view.channel, isUnconfigured: true });
  assert.equal((await lab.put(view)).status, 204);
});
beforeEach(async () => {
  await guest.run('ip', 'addr', 'flush', 'dev', 'eth0', 'scope', 'global');
});
after(async () => {
  await lab[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

/** busybox's client passes the lease to a script in its environment. */
async function udhcpc(...args: string[]): Promise<string> {
  const script = join(directory, 'udhcpc.sh');
  const output = join(directory, 'udhcpc.out');
  await writeFile(script, `#!/bin/sh\n[ "$1" = bound ] && env >${output}\nexit 0\n`, {
    mode: 0o755,
  });
  await rm(output, { force: true });
  await guest.run(
    'udhcpc',
    '-i',
    'eth0',
    '-n',
    '-q',
    '-f',
    '-t',
    '3',
    '-T',
    '1',
    '-s',
    script,
    ...args,
  );
  return await readFile(output, 'utf8');
}

test('busybox’s udhcpc gets the instance’s address and name, and neither router nor DNS server', async () => {
  const environment = await udhcpc('-O', 'staticroutes');
  assert.match(environment, /^ip=169\.254\.0\.1$/m);
  assert.match(environment, /^subnet=255\.255\.0\.0$/m);
  assert.match(environment, /^serverid=169\.254\.169\.254$/m);
  assert.match(environment, /^hostname=web1$/m);
  assert.match(environment, /^staticroutes=169\.254\.169\.254\/32 0\.0\.0\.0$/m);
  assert.doesNotMatch(environment, /^(router|dns)=/m);
});

test('busybox’s udhcpc gets its own address when it requests another address', async () => {
  assert.match(await udhcpc('-r', '10.9.8.7'), /^ip=169\.254\.0\.1$/m);
});

test('ISC’s dhclient gets the address and reaches the service', async () => {
  const lease = join(directory, 'leases');
  await writeFile(lease, '');
  await guest.run(
    ...(['dhclient', '-4', '-1', '-sf', '/bin/true', '-lf', lease, '-pf'] as const),
    ...([join(directory, 'dhclient.pid'), 'eth0'] as const),
  );
  process.kill(await pidIn(join(directory, 'dhclient.pid')));
  const text = await readFile(lease, 'utf8');
  assert.match(text, /fixed-address 169\.254\.0\.1;/);
  assert.match(text, /option rfc3442-classless-static-routes 32,169,254,169,254,0,0,0,0;/);
  assert.doesNotMatch(text, /option (routers|domain-name-servers) /);
});

/** dhclient's first process ends before its second one has written the file. */
async function pidIn(path: string): Promise<number> {
  for (;;) {
    const text = await readFile(path, 'utf8').catch(() => '');
    if (text.endsWith('\n')) return Number(text);
    await sleep(20);
  }
}

test('a foreign MAC on the device gets no lease', async () => {
  await guest.run('ip', 'link', 'set', 'eth0', 'address', '52:54:00:00:00:99');
  await assert.rejects(udhcpc());
  await guest.run('ip', 'link', 'set', 'eth0', 'address', view.channel.mac);
});

test('DHCP requests of a removed instance are not answered', async () => {
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await assert.rejects(udhcpc());
  await lab.put(view);
  assert.match(await udhcpc(), /^ip=169\.254\.0\.1$/m);
});
