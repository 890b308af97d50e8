import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { NetworkRecord } from '#shared/contract/network.ts';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';
import { bridgeOf, natNamesOf } from '../../../../noded/net/tenant/nat-names.ts';
import type { GuestNic } from '../../../../noded/net/tenant/nat-guests.ts';
import { NatNetworks } from '../../../../noded/net/tenant/nat-networks.ts';
import * as lab from './nat-lab.ts';
import { hasOwnNetwork, runInOwnNetwork } from '../../../lab/own-network.ts';

if (!hasOwnNetwork()) {
  test('the tests of a NAT network pass in a separate network namespace', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else {
  describe('a NAT network', natTests);
}

function natTests(): void {
  const root = mkdtempSync(join(tmpdir(), 'gnt-nat-'));
  const dir = join(root, 'run');
  const bridge = bridgeOf(natNamesOf(root), lab.LAN);
  let networks: NetworkRecord[] = [];
  /** As the records have them. */
  let nics: GuestNic[] = [];
  let nat: NatNetworks;
  let web: lab.TestGuest;
  let db: lab.TestGuest;
  let empty = '';
  const used = new DisposableStack();
  const open = (): NatNetworks =>
    new NatNetworks({
      ...{ nodeName: 'node1', root, dir, logger: silentLogger, clock: systemClock },
      ...{ lookIntervalMs: 500, listNics: () => Promise.resolve(nics) },
      readPolicy: () => Promise.resolve(lab.OPEN_REACH),
      users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID),
      listNetworks: () => Promise.resolve(networks),
      listMembers: () => Promise.resolve(new Map()),
    });

  before(async () => {
    chmodSync(root, 0o755);
    used.use(lab.makeSurroundings(root));
    for (const namespace of ['out', 'other', undefined]) used.use(await lab.serve(7777, namespace));
    empty = lab.picture();
    networks = [lab.LAN];
    nat = open();
    await nat.check(lab.LAN);
    await nat.settle(lab.LAN.name);
    web = await lab.addGuest(nat, {
      name: 'web.example.com',
      mac: 'aa:00:00:00:00:01',
      ip: '10.9.0.5',
    });
    db = await lab.addGuest(nat, {
      name: 'db.example.com',
      mac: 'aa:00:00:00:00:02',
      ip: '10.9.0.6',
    });
  });
  after(async () => {
    await nat[Symbol.asyncDispose]();
    for (const pid of lab.listDnsmasqs()) process.kill(Number(pid), 'SIGKILL');
    used.dispose();
    rmSync(root, { recursive: true });
  });

  test('gives its guests their own addresses by real DHCP', () => {
    for (const guest of [web, db]) {
      const told = lab.askByDhcp(guest.namespace, root);
      assert.equal(told?.['ip'], guest.ip);
      assert.equal(told['router'], '10.9.0.1');
      assert.equal(told['dns'], '10.9.0.1');
      assert.equal(told['mask'], '24');
    }
  });

  test('resolves full and short names of neighbours, and outside names', () => {
    const resolve = (name: string): string | null =>
      lab.inside('web', 'busybox', 'nslookup', '-type=a', name, '10.9.0.1');
    assert.match(resolve('db.example.com') ?? '', /10\.9\.0\.6/);
    assert.match(resolve('db') ?? '', /10\.9\.0\.6/);
    assert.match(resolve('outside.test') ?? '', /198\.51\.100\.1/);
  });

  test('lets a guest reach its neighbours, and the outside with the address of the host', () => {
    assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', '10.9.0.6'), null);
    const script = `import socket; print(socket.create_connection(("${lab.OUTSIDE}", 7777), 5).recv(64).decode())`;
    assert.equal(lab.python('web', script), lab.HOST_OUTSIDE);
    assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', '10.9.0.1'), null);
  });

  test('runs dnsmasq as a reserved user with two capabilities', () => {
    const [pid = '', ...more] = lab.listDnsmasqs();
    assert.deepEqual(more, []);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    assert.match(status, new RegExp(`^Uid:\\t${DEFAULT_FIRST_MACHINE_UID}\\t`, 'm'));
    assert.match(status, /^NoNewPrivs:\t1$/m);
    // CAP_NET_BIND_SERVICE and CAP_NET_ADMIN.
    assert.match(status, /^CapBnd:\t0000000000001400$/m);
  });

  test("is closed from outside, and towards the host, its cloud's metadata and other bridges", () => {
    const [out, other] = [
      { in: 'web', to: lab.OUTSIDE },
      { in: 'other', to: '192.0.2.1' },
    ];
    assert.ok(lab.reaches(out.in, out.to, 7777), 'the outside is open');
    assert.ok(lab.reaches(other.in, other.to, 7777), 'the host serves others');
    for (const address of [
      '10.9.0.1',
      lab.HOST_OUTSIDE,
      '192.0.2.1',
      '192.0.2.10',
      '169.254.169.254',
    ])
      assert.equal(lab.reaches('web', address, 7777), false, address);
    lab.ip('-n', 'out', 'route', 'add', '10.9.0.0/24', 'via', lab.HOST_OUTSIDE);
    assert.equal(lab.inside('out', 'busybox', 'ping', '-c1', '-W1', web.ip), null);
    // The host forwards for its network alone.
    lab.ip('-n', 'out', 'route', 'add', '192.0.2.0/24', 'via', lab.HOST_OUTSIDE);
    assert.equal(lab.inside('out', 'busybox', 'ping', '-c1', '-W1', '192.0.2.10'), null);
  });

  test('refuses a guest another address, MAC or ARP claim, and a DHCP server', () => {
    const ping = (to: string, ...from: readonly string[]): boolean =>
      lab.inside('web', 'busybox', 'ping', '-c1', '-W1', ...from, to) !== null;
    lab.ip('-n', 'web', 'address', 'add', '10.9.0.99/24', 'dev', 'eth0');
    assert.equal(ping('10.9.0.6', '-I', '10.9.0.99'), false, 'a second address');
    assert.equal(ping('10.9.0.6', '-I', '10.9.0.5'), true);
    lab.ip('-n', 'web', 'address', 'del', '10.9.0.99/24', 'dev', 'eth0');

    lab.ip('-n', 'web', 'link', 'set', 'eth0', 'address', db.mac);
    assert.equal(ping('10.9.0.1'), false, 'its neighbour’s MAC');
    lab.ip('-n', 'web', 'link', 'set', 'eth0', 'address', web.mac);

    const claim = (address: string): void =>
      void lab.inside(
        'web',
        'arping',
        '-U',
        '-c',
        '2',
        '-w',
        '2',
        '-I',
        'eth0',
        '-S',
        address,
        address,
      );
    lab.inside('db', 'busybox', 'ping', '-c1', '-W2', '10.9.0.1');
    for (const address of ['10.9.0.1', '10.9.0.6']) claim(address);
    const neighbours = lab.ip('-n', 'db', 'neigh') + lab.ip('neigh', 'show', 'dev', bridge);
    assert.doesNotMatch(neighbours, /10\.9\.0\.(1|6) .*aa:00:00:00:00:01/);

    const heard = (source: number, port: number): string => {
      const listen = `import socket, subprocess
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.bind(("0.0.0.0", ${port})); s.settimeout(2)
say = 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.bind(("0.0.0.0", ${source})); s.sendto(b"offer", ("10.9.0.255", ${port}))'
subprocess.run(["nsenter", "--net=/run/netns/web", "python3", "-c", say], check=True)
try:
  print(s.recv(64).decode())
except TimeoutError:
  print("nothing")`;
      return lab.python('db', listen);
    };
    assert.equal(heard(6700, 6800), 'offer', 'what is no DHCP arrives');
    assert.equal(heard(67, 68), 'nothing', 'an offer of a guest does not');
  });

  test('ignores DHCP releases in a neighbour’s name', () => {
    const leases = join(dir, bridge, 'leases');
    assert.ok(readFileSync(leases, 'utf8').includes(db.mac));
    const sendWhole = `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("${web.ip}", 68)); s.sendto(p, ("10.9.0.1", 67))`;
    const release = (chaddr: string, address: string, send = sendWhole): string => `import socket
m = bytes.fromhex("${chaddr.replaceAll(':', '')}")
ip = bytes(map(int, "${address}".split(".")))
p = bytes([1, 1, 6, 0]) + b"abcd" + bytes(4) + ip + bytes(12) + m + bytes(10 + 192) + bytes([99, 130, 83, 99, 53, 1, 7, 54, 4, 10, 9, 0, 1, 255])
${send}`;
    lab.python('web', release(db.mac, db.ip));
    // The part that says which port ends before the part that says whose address it is.
    lab.python('web', release(db.mac, db.ip, lab.sendInFragments(web.ip, '10.9.0.1')));
    // Its own is heard, after the other: so the other would have been.
    lab.python('web', release(web.mac, web.ip));
    const deadline = Date.now() + 10_000;
    // dnsmasq empties the file before it writes it.
    const isWritten = (text: string): boolean => text !== '' && !text.includes(web.mac);
    while (!isWritten(readFileSync(leases, 'utf8')) && Date.now() < deadline);
    const written = readFileSync(leases, 'utf8');
    assert.ok(!written.includes(web.mac));
    assert.ok(written.includes(db.mac));
    assert.equal(lab.askByDhcp('web', root)?.['ip'], web.ip);
  });

  test('keeps dnsmasq, rules and leases across a restart of the daemon', async () => {
    const before = lab.picture();
    const leases = readFileSync(join(dir, bridge, 'leases'), 'utf8');
    nics = [web, db].map(({ mac, ip, namespace }) => {
      return {
        ...{ uuid: lab.nicUuidOf(mac), mac, ip },
        ...{ name: `${namespace}.example.com`, network: 'lan' },
      };
    });
    // An invalid guest of an earlier release affects only itself.
    nics.push({
      uuid: 'bad',
      mac: 'aa:00:00:00:00:09',
      ip: '10.9.0.05',
      name: 'bad',
      network: 'lan',
    });
    await nat[Symbol.asyncDispose]();
    nat = open();
    await nat.settle(lab.LAN.name);
    assert.equal(lab.picture(), before);
    assert.equal(readFileSync(join(dir, bridge, 'leases'), 'utf8'), leases);
    assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', '10.9.0.6'), null);
  });

  test('is restored by a daemon whose files are lost', async () => {
    const withoutPid = (): string => lab.picture().replace(/dnsmasq: \d+/, 'dnsmasq: one');
    const before = withoutPid();
    await nat[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true });
    execFileSync('nft', ['flush', 'ruleset']);
    nat = open();
    await nat.follow();
    assert.equal(withoutPid(), before);
    assert.equal(lab.askByDhcp('web', root)?.['ip'], web.ip);
    assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', db.ip), null);
    assert.equal(lab.reaches('web', '10.9.0.1', 7777), false);
  });

  test('stays with its rules while a guest uses it, also without a record', async () => {
    const before = lab.picture();
    await nat[Symbol.asyncDispose]();
    networks = [];
    nat = open();
    await nat.follow();
    assert.equal(lab.picture(), before);
    networks = [lab.LAN];
    await nat.follow();
    assert.equal(lab.picture(), before);
  });

  test('stays unchanged when a daemon starts without access to the records', async () => {
    const before = lab.picture();
    await nat[Symbol.asyncDispose]();
    const away = new NatNetworks({
      ...{ nodeName: 'node1', root, dir, logger: silentLogger, clock: systemClock },
      readPolicy: () => Promise.resolve(lab.OPEN_REACH),
      users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID),
      listNetworks: () => Promise.reject(new Error('away')),
      listMembers: () => Promise.resolve(new Map()),
      listNics: () => Promise.reject(new Error('away')),
    });
    await away.follow();
    assert.equal(lab.picture(), before);
    await away[Symbol.asyncDispose]();
    assert.equal(lab.picture(), before);
    nat = open();
    await nat.follow();
    assert.equal(lab.picture(), before);
  });

  test('replaces a stopped dnsmasq without delaying jobs', async () => {
    const [pid = ''] = lab.listDnsmasqs();
    const settleMs = async (): Promise<number> => {
      const began = performance.now();
      await nat.settle(lab.LAN.name);
      return performance.now() - began;
    };
    const usualMs = await settleMs();
    await lab.haltDnsmasq(pid, async () => {
      assert.ok((await settleMs()) < 4 * usualMs + 3000, 'a job waits for it');
    });
    await nat.settle(lab.LAN.name);
    assert.equal(lab.listDnsmasqs().length, 1);
    assert.ok(!lab.listDnsmasqs().includes(pid));
    assert.equal(lab.askByDhcp('db', root)?.['ip'], db.ip);
    assert.match(
      nat.report().repairs.at(-1)?.what ?? '',
      /dnsmasq of network 'lan' stopped responding/,
    );
  });

  test('restores a killed dnsmasq and flushed rules', async () => {
    const [pid] = lab.listDnsmasqs();
    const leases = readFileSync(join(dir, bridge, 'leases'), 'utf8');
    process.kill(Number(pid), 'SIGKILL');
    execFileSync('nft', ['flush', 'ruleset']);
    while (existsSync(`/proc/${pid ?? ''}/exe`));
    await nat.follow();
    assert.equal(lab.listDnsmasqs().length, 1);
    assert.equal(readFileSync(join(dir, bridge, 'leases'), 'utf8'), leases);
    assert.equal(lab.askByDhcp('db', root)?.['ip'], db.ip);
    assert.equal(lab.reaches('web', '10.9.0.1', 7777), false);
  });

  test('restores removed rules, forwarding and bridge of running guests', async () => {
    const before = lab.picture();
    for (const family of ['inet', 'bridge'])
      execFileSync('nft', ['flush', 'table', family, natNamesOf(root).table]);
    writeFileSync('/proc/sys/net/ipv4/conf/up0/forwarding', '0');
    await nat.follow();
    assert.equal(lab.picture(), before);
    const told = nat.report().repairs.map(({ what }) => what);
    assert.deepEqual(told.slice(-2), [
      'the rules were changed or removed',
      'forwarding was disabled on up0',
    ]);
    const mac = readFileSync(`/sys/class/net/${bridge}/address`, 'utf8');
    lab.ip('link', 'delete', bridge);
    await nat.follow();
    assert.equal(readFileSync(`/sys/class/net/${bridge}/address`, 'utf8'), mac);
    for (const guest of [web, db])
      assert.equal(lab.askByDhcp(guest.namespace, root)?.['ip'], guest.ip);
    assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', db.ip), null);
    assert.equal(lab.listDnsmasqs().length, 1);
    assert.match(
      nat.report().repairs.at(-1)?.what ?? '',
      /the bridge of network 'lan' had disappeared/,
    );
  });

  test('has no rules and no names of a removed guest', async () => {
    lab.removeGuest(db);
    await nat.tidy();
    assert.doesNotMatch(
      execFileSync('nft', ['list', 'ruleset'], { encoding: 'utf8' }),
      /10\.9\.0\.6/,
    );
    assert.doesNotMatch(readFileSync(join(dir, bridge, 'hosts'), 'utf8'), /db/);
  });

  test('gives a new guest the address of a guest that was just removed', async () => {
    assert.match(readFileSync(join(dir, bridge, 'leases'), 'utf8'), / 10\.9\.0\.6 /);
    const next = { name: 'next.example.com', mac: 'aa:00:00:00:00:03', ip: db.ip };
    const guest = await lab.addGuest(nat, next);
    assert.equal(lab.askByDhcp('next', root)?.['ip'], db.ip);
    assert.match(readFileSync(join(dir, bridge, 'leases'), 'utf8'), / 10\.9\.0\.5 /);
    lab.removeGuest(guest);
    await nat.tidy();
  });

  test('limits DNS connections, DNS queries and tracked connections per guest', async () => {
    const greedy = await lab.addGuest(nat, {
      ...{ name: 'greedy.example.com', mac: 'aa:00:00:00:00:04', ip: '10.9.0.7' },
    });
    lab.askByDhcp('greedy', root);
    assert.equal(lab.openDnsConnections('greedy', 10), 4);
    const told = lab.askOften('greedy', 3000);
    assert.ok(told >= 300 && told < 3000, `${told} answers`);
    lab.pingAsMany('greedy', 6000);
    const count = Number(readFileSync('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'));
    assert.ok(count > 4000 && count < 4500, `${count} connections`);
    assert.equal(lab.openDnsConnections('web', 4), 4);
    assert.notEqual(lab.inside('web', 'busybox', 'ping', '-c1', '-W5', '10.9.0.1'), null);
    lab.removeGuest(greedy);
    await nat.tidy();
  });

  test('leaves nothing after its removal, also when its files are lost', async () => {
    lab.removeGuest(web);
    networks = [];
    await nat[Symbol.asyncDispose]();
    // Whatever becomes of its files.
    rmSync(dir, { recursive: true, force: true });
    nat = open();
    await nat.settle(lab.LAN.name);
    assert.equal(lab.picture(), empty);
    assert.equal(existsSync(dir), false);
  });

  test('is refused where it overlaps with networks that the host reaches', async () => {
    await assert.rejects(
      nat.check({ ...lab.LAN, network: '198.51.100.0/25' }),
      /overlaps with 198\.51\.100\.0\/24/,
    );
    lab.ip('address', 'add', '203.0.113.9/32', 'dev', 'lo');
    lab.ip('route', 'add', '172.20.0.0/16', 'dev', 'up0', 'table', '51820');
    const refusals = {
      '203.0.113.0/24': /overlaps with 203\.0\.113\.9\/32, which this host reaches through lo/,
      '172.20.7.0/24': /overlaps with 172\.20\.0\.0\/16, which this host reaches through up0/,
      '169.254.0.0/24': /overlaps with 169\.254\.0\.0\/16/,
      '127.9.0.0/24': /overlaps with 127\.0\.0\.0\/8/,
      '0.9.0.0/24': /overlaps with 0\.0\.0\.0\/8/,
      '239.1.0.0/24': /overlaps with 224\.0\.0\.0\/3/,
    };
    for (const [network, why] of Object.entries(refusals))
      await assert.rejects(nat.check({ ...lab.LAN, network }), why);
    writeFileSync('/etc/resolv.conf', 'nameserver 10.9.0.53\n');
    await assert.rejects(
      nat.check(lab.LAN),
      /overlaps with 10\.9\.0\.53, which this host uses for name resolution/,
    );
    writeFileSync('/etc/resolv.conf', `nameserver ${lab.OUTSIDE}\n`);
  });

  test('is not created where it overlaps with a network of the host, while other networks are', async () => {
    const before = lab.ip('route');
    const taken = { ...lab.LAN, name: 'taken', uuid: '22222222-2222-4222-8222-222222222222' };
    networks = [{ ...taken, network: '192.0.2.0/24', gateway: '192.0.2.77' }, lab.LAN];
    await nat.follow();
    assert.doesNotMatch(lab.ip('address'), /192\.0\.2\.77/);
    assert.match(lab.ip('address', 'show', 'dev', bridge), /10\.9\.0\.1\/24/);
    await assert.rejects(nat.settle('taken'), /overlaps with 192\.0\.2\.0\/24/);
    await nat.settle(lab.LAN.name);
    networks = [];
    await nat.settle(lab.LAN.name);
    assert.equal(lab.ip('route'), before);
  });
}
