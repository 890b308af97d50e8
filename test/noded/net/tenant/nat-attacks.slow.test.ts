import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';
import { bridgeOf, natNamesOf } from '../../../../noded/net/tenant/nat-names.ts';
import { NatNetworks } from '../../../../noded/net/tenant/nat-networks.ts';
import * as lab from './nat-lab.ts';
import { hasOwnNetwork, runInOwnNetwork } from '../../../lab/own-network.ts';

if (!hasOwnNetwork()) {
  test('the tests of a hostile guest of a NAT network pass in a separate network namespace', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else {
  describe('a hostile guest of a NAT network', attacks);
}

const PORT = 7777;

function attacks(): void {
  const root = mkdtempSync(join(tmpdir(), 'gnt-nat-'));
  const dir = join(root, 'run');
  const bridge = bridgeOf(natNamesOf(root), lab.LAN);
  let nat: NatNetworks;
  let policy = lab.OPEN_REACH;
  let web: lab.TestGuest;
  let db: lab.TestGuest;
  const used = new DisposableStack();

  before(async () => {
    chmodSync(root, 0o755);
    lab.neighbour('out', 'up0', `${lab.HOST_OUTSIDE}/24`, `${lab.OUTSIDE}/24`);
    lab.ip('route', 'add', 'default', 'via', lab.OUTSIDE);
    used.use(await lab.serve(PORT));
    used.use(await lab.serve(PORT, 'out'));
    nat = new NatNetworks({
      ...{ nodeName: 'node1', root, dir, logger: silentLogger, clock: systemClock },
      readPolicy: () => Promise.resolve(policy),
      users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID),
      listNetworks: () => Promise.resolve([lab.LAN]),
      listMembers: () => Promise.resolve(new Map()),
      listNics: () => Promise.resolve([]),
    });
    await nat.settle(lab.LAN.name);
    web = await lab.addGuest(nat, { name: 'web.test', mac: 'aa:00:00:00:00:01', ip: '10.9.0.5' });
    db = await lab.addGuest(nat, {
      ...{ name: 'db.test', mac: 'aa:00:00:00:00:02', ip: '10.9.0.6', reach: 'public' },
    });
    for (const { namespace } of [web, db]) assert.ok(lab.askByDhcp(namespace, root));
  });
  after(async () => {
    for (const guest of [web, db]) lab.removeGuest(guest);
    await nat[Symbol.asyncDispose]();
    used.dispose();
    assert.deepEqual(lab.listDnsmasqs(), []);
    rmSync(root, { recursive: true });
  });

  test('finds no open TCP port of the gateway except 53', () => {
    // At once: the kernel tells of few refusals in a second.
    const script = `import socket, time
asked = {}
for port in [*range(1, 900), ${PORT}]:
  s = socket.socket(); s.setblocking(False); s.connect_ex(("10.9.0.1", port)); asked[port] = s
time.sleep(3)
found = []
for port, s in asked.items():
  try: s.getpeername(); found.append(port)
  except OSError: pass
print(found)`;
    assert.equal(lab.python('web', script), '[53]');
  });

  test('reaches no loopback of the host through the gateway', () => {
    assert.ok(lab.reaches('web', lab.OUTSIDE, PORT), 'the outside is open');
    lab.ip('-n', 'web', 'address', 'del', '127.0.0.1/8', 'dev', 'lo');
    lab.inside('web', 'sh', '-c', 'echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet');
    lab.ip('-n', 'web', 'route', 'add', '127.0.0.0/8', 'via', '10.9.0.1', 'src', web.ip);
    assert.equal(lab.reaches('web', '127.0.0.1', PORT), false);
    lab.ip('-n', 'web', 'route', 'del', '127.0.0.0/8');
    lab.ip('-n', 'web', 'address', 'add', '127.0.0.1/8', 'dev', 'lo');
  });

  test('exchanges no IPv6 with the bridge and its neighbours', () => {
    assert.equal(lab.ip('-6', 'address', 'show', 'dev', bridge), '');
    writeFileSync(`/proc/sys/net/ipv6/conf/${bridge}/disable_ipv6`, '0');
    for (const [words, at] of [
      [[], '1'],
      [['-n', 'web'], '2'],
      [['-n', 'db'], '3'],
    ] as const) {
      const device = at === '1' ? bridge : 'eth0';
      lab.ip(...words, 'address', 'add', `fe80::${at}/64`, 'dev', device, 'nodad');
    }
    for (const there of ['fe80::1', 'fe80::3'])
      assert.equal(
        lab.inside('web', 'busybox', 'ping6', '-c1', '-W1', '-I', 'eth0', there),
        null,
        there,
      );
    // A router's advertisement, as its neighbour would take it.
    const accepts = '/proc/sys/net/ipv6/conf/eth0/accept_ra';
    lab.inside('db', 'sh', '-c', `echo 2 >${accepts}`);
    lab.python(
      'web',
      `import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xc0, 3600, 3600, 0) + socket.inet_pton(socket.AF_INET6, "2001:db8::")
s.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix, ("ff02::1%eth0", 0))`,
    );
    const learned = lab.ip('-n', 'db', '-6', 'route') + lab.ip('-n', 'db', '-6', 'address');
    assert.doesNotMatch(learned, /2001:db8|default/);
    writeFileSync(`/proc/sys/net/ipv6/conf/${bridge}/disable_ipv6`, '1');
  });

  test('takes no lease of another guest with 2000 DHCP requests', () => {
    const leases = (): string => readFileSync(join(dir, bridge, 'leases'), 'utf8');
    const before = leases();
    lab.python(
      'web',
      `import os, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
s.bind(("0.0.0.0", 68))
for i in range(2000):
  p = bytes([1, 1, 6, 0]) + os.urandom(4) + bytes([0, 0, 128, 0]) + bytes(16) + b"\\x02" + os.urandom(5) + bytes(10 + 192) + bytes([99, 130, 83, 99, 53, 1, 1, 255])
  s.sendto(p, ("255.255.255.255", 67))`,
    );
    assert.equal(lab.askByDhcp('db', root)?.['ip'], db.ip);
    const owners = (text: string): string => text.replaceAll(/^\d+ /gm, '');
    assert.equal(owners(leases()), owners(before));
  });

  test('reaches a private network through the host only if the policy allows it', async () => {
    const inner = '10.50.0.1';
    lab.ip('-n', 'out', 'address', 'add', `${inner}/32`, 'dev', 'lo');
    const whoReaches = (address: string): readonly string[] =>
      ['web', 'db'].filter((namespace) => lab.reaches(namespace, address, PORT));
    assert.deepEqual(whoReaches(inner), ['web']);
    assert.deepEqual(whoReaches(lab.OUTSIDE), ['web', 'db']);
    policy = { confinesAll: true, networks: [] };
    await nat.follow();
    assert.deepEqual(whoReaches(inner), []);
    assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', db.ip), null, 'neighbours');
    policy = { confinesAll: true, networks: ['10.50.0.0/16'] };
    await nat.follow();
    assert.deepEqual(whoReaches(inner), ['web', 'db']);
    policy = lab.OPEN_REACH;
  });

  test('reaches no service of the host by its gateway or outside address', () => {
    // Addresses decide, whatever an outside name server answers.
    for (const address of ['10.9.0.1', lab.HOST_OUTSIDE])
      assert.equal(lab.reaches('web', address, PORT), false, address);
  });
}
