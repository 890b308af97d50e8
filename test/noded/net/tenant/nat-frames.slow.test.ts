import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
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

const [major = 0, minor = 0] = release().split('.').map(Number);
/** Linux limits the MACs that a bridge learns since 6.7. */
const isOldKernel = major < 6 || (major === 6 && minor < 7);

if (!hasOwnNetwork()) {
  test('the tests of raw frames of a hostile guest pass in a separate network namespace', () => {
    assert.equal(runInOwnNetwork(fileURLToPath(import.meta.url)), null);
  });
} else {
  describe('raw frames of a hostile guest of a NAT network', frameTests);
}

const PORT = 7777;
const hostNetwork = `/proc/${process.pid}/ns/net`;

const third = {
  ...{ name: 'new.test', mac: 'aa:00:00:00:00:03', ip: '10.9.0.7', network: lab.LAN.name },
  uuid: lab.nicUuidOf('aa:00:00:00:00:03'),
};

/** Python that opens a packet socket and defines helpers that build frames. */
const RAW = `import os, select, socket, struct, subprocess, time
def mac(text): return bytes.fromhex(text.replace(":", ""))
def group(x): return mac("01:80:c2:00:00:%02x" % x)
def checksum(b):
  s = sum(struct.unpack("!%dH" % (len(b) // 2), b)); s = (s >> 16) + (s & 0xffff); return ~(s + (s >> 16)) & 0xffff
def ip(src, dst, proto, body):
  h = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, proto, 0, socket.inet_aton(src), socket.inet_aton(dst))
  return h[:10] + struct.pack("!H", checksum(h)) + h[12:] + body
def udp(sport, dport, body): return struct.pack("!HHHH", sport, dport, 8 + len(body), 0) + body
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); raw.bind(("eth0", 0))
def heard(seconds, test):
  found = 0; end = time.time() + seconds
  while time.time() < end:
    if select.select([raw], [], [], max(0, end - time.time()))[0]:
      frame, where = raw.recvfrom(2048)
      if where[2] != socket.PACKET_OUTGOING and test(frame): found += 1
  return found
`;

function frameTests(): void {
  const root = mkdtempSync(join(tmpdir(), 'gnt-nat-'));
  const dir = join(root, 'run');
  const bridge = bridgeOf(natNamesOf(root), lab.LAN);
  let nat: NatNetworks;
  let web: lab.TestGuest;
  let db: lab.TestGuest;
  const used = new DisposableStack();
  const countEntries = (): number =>
    Number(lab.run('sh', '-c', `bridge fdb show br ${bridge} | wc -l`));

  before(async () => {
    chmodSync(root, 0o755);
    lab.neighbour('out', 'up0', `${lab.HOST_OUTSIDE}/24`, `${lab.OUTSIDE}/24`);
    lab.ip('route', 'add', 'default', 'via', lab.OUTSIDE);
    used.use(await lab.serve(PORT));
    nat = new NatNetworks({
      ...{ nodeName: 'node1', root, dir, logger: silentLogger, clock: systemClock },
      readPolicy: () => Promise.resolve(lab.OPEN_REACH),
      users: planMachineUsers(DEFAULT_FIRST_MACHINE_UID),
      listNetworks: () => Promise.resolve([lab.LAN]),
      listMembers: () => Promise.resolve(new Map()),
      listNics: () => Promise.resolve([]),
    });
    await nat.settle(lab.LAN.name);
    web = await lab.addGuest(nat, { name: 'web.test', mac: 'aa:00:00:00:00:01', ip: '10.9.0.5' });
    db = await lab.addGuest(nat, { name: 'db.test', mac: 'aa:00:00:00:00:02', ip: '10.9.0.6' });
    for (const { namespace } of [web, db]) assert.ok(lab.askByDhcp(namespace, root));
  });
  after(async () => {
    for (const guest of [web, db]) lab.removeGuest(guest);
    await nat[Symbol.asyncDispose]();
    used.dispose();
    rmSync(root, { recursive: true });
  });

  test('link protocol frames with a neighbour’s MAC redirect none of the neighbour’s traffic', () => {
    const seen = lab.python(
      'web',
      `${RAW}
answered = 0
for i in range(3):
  for x in range(16): raw.send(group(x) + mac("${db.mac}") + bytes([0x88, 0xcc]) + bytes(50))
  answered += subprocess.run(["nsenter", "--net=${hostNetwork}", "busybox", "ping", "-c1", "-W1", "${db.ip}"], stdout=subprocess.DEVNULL).returncode == 0
print(heard(0.1, lambda f: f[0:6] == mac("${db.mac}")), answered)`,
    );
    assert.equal(seen, '0 3', 'frames that the guest sees, pings that its neighbour answers');
  });

  test('frames from random MACs add no forwarding entries', () => {
    const before = countEntries();
    lab.python(
      'web',
      `${RAW}
for i in range(2000):
  for x in range(16): raw.send(group(x) + b"\\x02" + os.urandom(5) + bytes([0x88, 0xcc]) + bytes(50))
  raw.send(b"\\xff" * 6 + b"\\x02" + os.urandom(5) + bytes([8, 0]) + bytes(50))`,
    );
    assert.equal(countEntries(), before);
  });

  test('an IPv4 packet in a link protocol frame reaches no service of the host', () => {
    const heardByHost = lab.python(
      'web',
      `${RAW}
listen = """import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", ${PORT})); print("up", flush=True)
count = 0; s.settimeout(2)
try:
  while True: s.recv(64); count += 1
except TimeoutError: print(count)"""
host = subprocess.Popen(["nsenter", "--net=${hostNetwork}", "python3", "-c", listen], stdout=subprocess.PIPE, text=True)
host.stdout.readline()
for x in range(16):
  for dst in ("10.9.0.1", "${lab.HOST_OUTSIDE}"):
    raw.send(group(x) + mac("${web.mac}") + bytes([8, 0]) + ip("${web.ip}", dst, 17, udp(4321, ${PORT}, b"hi")))
print(host.stdout.read().strip())`,
    );
    assert.equal(heardByHost, '0', 'datagrams of 32');
  });

  test('ARP in a link protocol frame is not answered', () => {
    const answers = lab.python(
      'web',
      `${RAW}
for x in range(16):
  body = struct.pack("!HHBBH", 1, 0x800, 6, 4, 1) + mac("${web.mac}") + socket.inet_aton("${web.ip}") + bytes(6) + socket.inet_aton("${lab.HOST_OUTSIDE}")
  raw.send(group(x) + mac("${web.mac}") + bytes([8, 6]) + body)
print(heard(1, lambda f: f[12:14] == bytes([8, 6])))`,
    );
    assert.equal(answers, '0');
  });

  test('frames to an unknown MAC reach no neighbour', () => {
    lab.ip('neigh', 'replace', '10.9.0.99', 'lladdr', 'aa:00:00:00:00:99', 'dev', bridge);
    const listen = (send: string): string =>
      lab.python(
        'db',
        `${RAW}
${send}
print(heard(2, lambda f: f[0:6] == mac("aa:00:00:00:00:99")))`,
      );
    const from = (where: string): string =>
      listen(
        `subprocess.run(["nsenter", "--net=${where}", "busybox", "ping", "-c2", "-W1", "10.9.0.99"], stdout=subprocess.DEVNULL)`,
      );
    assert.equal(from(hostNetwork), '0', 'from the host');
    lab.ip(
      '-n',
      'web',
      'neigh',
      'replace',
      '10.9.0.99',
      'lladdr',
      'aa:00:00:00:00:99',
      'dev',
      'eth0',
    );
    assert.equal(from('/run/netns/web'), '0', 'from another guest');
  });

  test('the port of a new TAP has learning and unicast flooding off, and a static entry for its MAC', async () => {
    const tap = await nat.openNatTap(lab.LAN, third);
    const read = (name: string): string =>
      readFileSync(`/sys/class/net/${tap.device}/brport/${name}`, 'utf8').trim();
    assert.deepEqual([read('learning'), read('unicast_flood')], ['0', '0']);
    const entries = lab.run('bridge', 'fdb', 'show', 'br', bridge);
    assert.match(entries, new RegExp(`^aa:00:00:00:00:03 dev ${tap.device} .*static`, 'm'));
    tap.close();
  });

  test('a NIC whose TAP is in use is refused, and the rules of that TAP stay', async () => {
    const { table } = natNamesOf(root);
    const rules = (): string =>
      lab.run('nft', 'list', 'chain', 'bridge', table, `from_${db.device}`);
    const before = rules();
    const again = { ...third, uuid: lab.nicUuidOf(db.mac) };
    await assert.rejects(nat.openNatTap(lab.LAN, again), { code: 'NETWORK_SETUP' });
    assert.equal(rules(), before);
    assert.notEqual(lab.inside('db', 'busybox', 'ping', '-c1', '-W5', '10.9.0.1'), null);
  });

  test('a NIC with the MAC of the gateway is refused, and a neighbour still reaches the gateway', async () => {
    const mac = readFileSync(`/sys/class/net/${bridge}/address`, 'utf8').trim();
    await assert.rejects(nat.openNatTap(lab.LAN, { ...third, mac }), { code: 'CONFLICT' });
    assert.notEqual(lab.inside('db', 'busybox', 'ping', '-c1', '-W5', '10.9.0.1'), null);
  });

  test('learning and flooding that an operator turned on are turned off, and the MACs learned there are removed', async () => {
    const port = `/sys/class/net/${web.device}/brport`;
    for (const name of ['learning', 'unicast_flood']) writeFileSync(`${port}/${name}`, '1');
    lab.run('bridge', 'fdb', 'add', 'aa:00:00:00:00:77', 'dev', web.device, 'master', 'dynamic');
    await nat.follow();
    const read = (name: string): string => readFileSync(`${port}/${name}`, 'utf8').trim();
    assert.deepEqual([read('learning'), read('unicast_flood')], ['0', '0']);
    assert.doesNotMatch(lab.run('bridge', 'fdb', 'show', 'br', bridge), /aa:00:00:00:00:77/);
  });

  test('joining many multicast groups adds no entries, and a query makes no guest a router', () => {
    lab.python(
      'web',
      `${RAW}
def igmp(kind, group):
  b = struct.pack("!BBH4s", kind, 10, 0, group)
  return b[:2] + struct.pack("!H", checksum(b)) + b[4:]
for i in range(6000):
  group = bytes([239, 1, i >> 8, i & 255])
  raw.send(b"\\x01\\x00\\x5e" + group[1:] + mac("${web.mac}") + bytes([8, 0]) + ip("${web.ip}", socket.inet_ntoa(group), 2, igmp(0x16, group)))
raw.send(mac("01:00:5e:00:00:01") + mac("${web.mac}") + bytes([8, 0]) + ip("${web.ip}", "224.0.0.1", 2, igmp(0x11, bytes(4))))`,
    );
    const groups = lab.run('bridge', 'mdb', 'show', 'dev', bridge);
    assert.doesNotMatch(groups, /239\.1|router/);
  });

  test('VLAN-tagged, non-IPv4 and spoofed frames reach no neighbour', () => {
    const heard = lab.python(
      'db',
      `${RAW}
send = """import socket, struct
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); raw.bind(("eth0", 0))
own = bytes.fromhex("${web.mac}".replace(":", "")); spoofed = bytes.fromhex("4500001c000100004011" + "0000" + "0a090001" + "0a090006" + "00350035" + "00080000")
for there in (bytes.fromhex("${db.mac}".replace(":", "")), bytes([255] * 6)):
  for tags in ("81000000", "81000005", "88a80005", "88a8000581000005"):
    raw.send(there + own + bytes.fromhex(tags) + bytes([8, 0]) + spoofed)
  for kind in ("86dd", "88cc", "888e", "8847", "8863", "0842", "88f7"): raw.send(there + own + bytes.fromhex(kind) + bytes(64))
  raw.send(there + own + struct.pack("!H", 40) + bytes([0x42, 0x42, 3]) + bytes(40))
  raw.send(there + own + bytes([8, 0]) + spoofed)"""
subprocess.run(["nsenter", "--net=/run/netns/web", "python3", "-c", send], check=True)
print(heard(1, lambda f: f[6:12] == mac("${web.mac}")))`,
    );
    assert.equal(heard, '0');
  });

  test('a bridge whose port learns remembers 1024 MACs at most', { skip: isOldKernel }, () => {
    const before = countEntries();
    for (const setting of ['no_linklocal_learn', 'group_fwd_mask'])
      writeFileSync(`/sys/class/net/${bridge}/bridge/${setting}`, '0');
    writeFileSync(`/sys/class/net/${web.device}/brport/learning`, '1');
    lab.python(
      'web',
      `${RAW}
for i in range(5000): raw.send(group(14) + b"\\x02" + os.urandom(5) + bytes([0x88, 0xcc]) + bytes(50))`,
    );
    const learned = countEntries() - before;
    assert.ok(learned > 900 && learned <= 1024, `${learned} entries`);
  });
}
