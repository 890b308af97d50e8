import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '#shared/process/run.ts';
import { exchangePaths } from '#shared/sys/files.ts';
import { closeFd } from '#shared/sys/libc.ts';
import {
  inNetworkNamespace,
  interfaceIndex,
  openDeviceSocket,
  openTap,
} from '#shared/sys/network-sockets.ts';

const namespace = `gnt-libc-${process.pid}`;
const path = `/run/netns/${namespace}`;
before(() => run('ip', ['netns', 'add', namespace]));
after(() => run('ip', ['netns', 'delete', namespace]));

const ownNamespace = (): string => readlinkSync('/proc/thread-self/ns/net');
const links = async (): Promise<string> =>
  (await run('ip', ['-n', namespace, '-o', 'link', 'show'])).stdout;

test('what runs in a namespace sees that one, and afterwards we are back, also after a failure', () => {
  const own = ownNamespace();
  assert.notEqual(inNetworkNamespace(path, ownNamespace), own);
  assert.equal(ownNamespace(), own);
  assert.throws(() =>
    inNetworkNamespace(path, () => {
      throw new Error('inside');
    }),
  );
  assert.equal(ownNamespace(), own);
  assert.throws(() => inNetworkNamespace('/run/netns/gnt-no-such', ownNamespace), {
    code: 'ENOENT',
  });
});

test('two folders change places as they are, and a missing one is named by its code', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'gnt-libc-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [a, b] = [join(directory, 'a'), join(directory, 'b')];
  for (const folder of [a, b]) mkdirSync(folder);
  writeFileSync(join(a, 'of-a'), '');
  exchangePaths(a, b);
  assert.deepEqual([readdirSync(a), readdirSync(b)], [[], ['of-a']]);
  assert.throws(() => exchangePaths(a, join(directory, 'none')), { code: 'ENOENT' });
});

test('a TAP is born in the namespace, is taken while it is open, and goes with its descriptor', async () => {
  const fd = inNetworkNamespace(path, () => openTap('gnt.com.1'));
  assert.match(await links(), /gnt\.com\.1/);
  assert.throws(() => inNetworkNamespace(path, () => openTap('gnt.com.1')), { code: 'EBUSY' });
  assert.throws(() => interfaceIndex('gnt.com.1'), { code: 'ENODEV' });
  closeFd(fd);
  assert.doesNotMatch(await links(), /gnt\.com\.1/);
  assert.throws(() => openTap('a-name-too-long-for-linux'), RangeError);
});

test('two devices with one address have a socket each on one port, and each answers for its own', async () => {
  const devices = ['vethA', 'vethB'];
  const guests = devices.map((_, index) => `${namespace}-g${index}`);
  try {
    for (const [index, device] of devices.entries()) {
      const guest = guests[index] ?? '';
      await run('ip', ['netns', 'add', guest]);
      await run('ip', [
        '-n',
        namespace,
        'link',
        'add',
        device,
        'type',
        'veth',
        'peer',
        'name',
        'eth0',
        'netns',
        guest,
      ]);
      await run('ip', ['-n', namespace, 'addr', 'add', '169.254.169.254/32', 'dev', device]);
      await run('ip', ['-n', namespace, 'link', 'set', device, 'up']);
      await run('ip', [
        '-n',
        namespace,
        'route',
        'add',
        `169.254.1.${index + 1}/32`,
        'dev',
        device,
      ]);
      await run('ip', ['-n', guest, 'addr', 'add', `169.254.1.${index + 1}/16`, 'dev', 'eth0']);
      await run('ip', ['-n', guest, 'link', 'set', 'eth0', 'up']);
    }
    const servers = await Promise.all(
      devices.map(async (device) => {
        const fd = inNetworkNamespace(path, () =>
          openDeviceSocket({ device, type: 'tcp', address: '169.254.169.254', port: 8080 }),
        );
        const server = createServer((socket) =>
          socket.resume().end(`HTTP/1.0 200 OK\r\n\r\n${device}`),
        );
        server.listen({ fd });
        await once(server, 'listening');
        return server;
      }),
    );
    for (const [index, device] of devices.entries()) {
      const { stdout } = await run('ip', [
        'netns',
        'exec',
        guests[index] ?? '',
        'curl',
        '-sS',
        '--max-time',
        '10',
        'http://169.254.169.254:8080/',
      ]);
      assert.equal(stdout, device);
    }
    for (const server of servers) {
      assert.equal((server.address() as AddressInfo | null)?.port, 8080);
      server.close();
      await once(server, 'close');
    }
  } finally {
    for (const guest of guests) await run('ip', ['netns', 'delete', guest]).catch(() => undefined);
  }
});

test('a socket for a device or an address that is not there says which of both', () => {
  const open = (device: string) => () =>
    inNetworkNamespace(path, () =>
      openDeviceSocket({ device, type: 'udp', address: '169.254.99.99', port: 67 }),
    );
  assert.throws(open('gnt-none'), { code: 'ENODEV' });
  assert.throws(open('lo'), { code: 'EADDRNOTAVAIL' });
});
