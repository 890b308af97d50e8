import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ReachPolicy } from '#shared/contract/guest-reach.ts';
import type { NetworkRecord } from '#shared/contract/network.ts';
import type { GuestNic } from '../../../../noded/net/tenant/nat-guests.ts';
import type { NatNetworks } from '../../../../noded/net/tenant/nat-networks.ts';

export const LAN: NetworkRecord = {
  ...{ schema: 1, name: 'lan', uuid: '11111111-1111-4111-8111-111111111111' },
  ...{ network: '10.9.0.0/24', gateway: '10.9.0.1', macPrefix: null, reserved: [], tags: [] },
  connections: { node1: { mode: 'nat' } },
};
/** Guests reach private networks, unless their NICs may not. */
export const OPEN_REACH: ReachPolicy = { confinesAll: false, networks: [] };
export const OUTSIDE = '198.51.100.1';
export const HOST_OUTSIDE = '198.51.100.2';

export function ip(...words: readonly string[]): string {
  return execFileSync('ip', words, { encoding: 'utf8' });
}

/** Returns the output of a command. */
export function run(file: string, ...args: readonly string[]): string {
  return execFileSync(file, args, { encoding: 'utf8' });
}

/** Returns the output of a command in a namespace; null when it failed. */
export function inside(namespace: string, ...command: readonly string[]): string | null {
  const ended = spawnSync('ip', ['netns', 'exec', namespace, ...command], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return ended.status === 0 ? ended.stdout : null;
}

/** Runs Python in a namespace, since a shell has no sockets. @returns its output */
export function python(namespace: string, script: string): string {
  return inside(namespace, 'python3', '-c', script)?.trim() ?? 'failed';
}

/** Whether a namespace gets an answer of a TCP server. */
export function reaches(namespace: string, address: string, port: number): boolean {
  const script = `import socket
try:
  print(socket.create_connection(("${address}", ${port}), 2).recv(64).decode())
except OSError as e:
  print("no")`;
  return !['no', 'failed'].includes(python(namespace, script));
}

/**
 * Python that sends `p` by UDP from port 68 to 67, in two IP packets of which the first is short.
 */
export function sendInFragments(from: string, to: string): string {
  return `import struct
u = struct.pack("!HHHH", 68, 67, 8 + len(p), 0) + p
r = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for part, place in ((u[:24], 0x2000), (u[24:], 3)):
  h = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(part), 7, place, 64, 17, 0)
  r.sendto(h + socket.inet_aton("${from}") + socket.inet_aton("${to}") + part, ("${to}", 0))`;
}

/** Opens so many connections to a DNS server. @returns how many it got */
export function openDnsConnections(namespace: string, count: number): number {
  const script = `import socket
held = []
try:
  for i in range(${count}): held.append(socket.create_connection(("10.9.0.1", 53), 2))
except OSError: pass
print(len(held))`;
  return Number(python(namespace, script));
}

/**
 * Asks for its name as fast as answers arrive, until one is missing.
 * @returns the number of answers
 */
export function askOften(namespace: string, count: number): number {
  const script = `import socket
q = bytes.fromhex("000101000001000000000000") + bytes([6]) + b"greedy" + bytes([7]) + b"example" + bytes([3]) + b"com" + bytes([0, 0, 1, 0, 1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
told = 0
try:
  while told < ${count}:
    for i in range(20): s.sendto(q, ("10.9.0.1", 53))
    for i in range(20):
      s.recv(512); told += 1
except TimeoutError: pass
print(told)`;
  return Number(python(namespace, script));
}

/** Each ping is a connection of its own to the host. */
export function pingAsMany(namespace: string, count: number): void {
  const script = `import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
for i in range(${count}):
  s.sendto(struct.pack("!BBHHH", 8, 0, ~(0x800 + i) & 0xffff, i, 0), ("10.9.0.1", 0))`;
  python(namespace, script);
}

const SERVER = `import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", int(sys.argv[1]))); s.listen(); print("up", flush=True)
while True:
  c, a = s.accept(); c.send(a[0].encode()); c.close()`;

/** Answers with the address of the client, in this or another namespace. */
export async function serve(port: number, namespace?: string): Promise<Disposable> {
  const prefix = namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace];
  const [file = '', ...args] = [...prefix, 'python3', '-c', SERVER, String(port)];
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return { [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

/** A namespace behind a link of this one. */
export function neighbour(name: string, host: string, own: string, there: string): void {
  ip('netns', 'add', name);
  ip('link', 'add', host, 'type', 'veth', 'peer', 'name', 'e0', 'netns', name);
  if (own !== '') ip('address', 'add', own, 'dev', host);
  ip('link', 'set', host, 'up');
  ip('-n', name, 'link', 'set', 'lo', 'up');
  ip('-n', name, 'address', 'add', there, 'dev', 'e0');
  ip('-n', name, 'link', 'set', 'e0', 'up');
}

export interface TestGuest {
  readonly namespace: string;
  readonly device: string;
  readonly mac: string;
  readonly ip: string;
}

/** Returns the UUID of the one NIC that has a MAC in these tests. */
export function nicUuidOf(mac: string): string {
  return `22222222-2222-4222-8222-${mac.replaceAll(':', '')}`;
}

/** A guest with a real network stack: in place of its TAP there is a link of the same name. */
export async function addGuest(
  nat: NatNetworks,
  guest: Pick<GuestNic, 'name' | 'mac' | 'ip' | 'reach'>,
): Promise<TestGuest> {
  const namespace = guest.name.split('.', 1)[0] ?? '';
  const tap = await nat.openNatTap(LAN, {
    uuid: nicUuidOf(guest.mac),
    ...guest,
    network: LAN.name,
  });
  const { device } = tap;
  const bridge = ip('-o', 'link', 'show', 'dev', device).match(/master (\S+)/)?.[1] ?? '';
  tap.close();
  ip('netns', 'add', namespace);
  ip('link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
  ip('link', 'set', device, 'master', bridge, 'up');
  ip('-n', namespace, 'link', 'set', 'lo', 'up');
  ip('-n', namespace, 'link', 'set', 'eth0', 'address', guest.mac, 'up');
  // The link takes the place of a TAP of an earlier release, whose port is open.
  await nat.follow();
  return { namespace, device, mac: guest.mac, ip: guest.ip };
}

/** Its end of the link goes with its namespace, in a while. */
export function removeGuest({ namespace, device }: TestGuest): void {
  ip('netns', 'delete', namespace);
  while (existsSync(`/sys/class/net/${device}`));
}

/** Runs a real DHCP client. @returns its script's environment; null without an answer */
export function askByDhcp(namespace: string, dir: string): Record<string, string> | null {
  const script = join(dir, 'udhcpc.sh');
  const told = join(dir, `told-${namespace}`);
  mkdirSync(dir, { recursive: true });
  const lines = [
    '#!/bin/sh',
    '[ "$1" = bound ] || [ "$1" = renew ] || exit 0',
    `env >${told}`,
    'ip address flush dev eth0; ip address add "$ip/$mask" dev eth0',
    'ip route replace default via "$router"',
  ];
  writeFileSync(script, `${lines.join('\n')}\n`, { mode: 0o755 });
  const words = ['-i', 'eth0', '-n', '-q', '-f', '-t', '4', '-T', '1', '-s', script];
  if (inside(namespace, 'busybox', 'udhcpc', ...words) === null) return null;
  const pairs = readFileSync(told, 'utf8').split('\n');
  return Object.fromEntries(
    pairs.map((line) => {
      const [key = '', value = ''] = line.split(/=(.*)/s, 2);
      return [key, value];
    }),
  );
}

/** Returns the visible state of networks on this host. */
export function picture(): string {
  const links = ip('-br', 'link').replaceAll(/^(\S+) .*$/gm, '$1');
  const listed = execFileSync('nft', ['list', 'ruleset'], { encoding: 'utf8' });
  // Sets keep recent clients for a while.
  const rules = listed.replaceAll(/\s*elements = \{[^}]*\}/g, '');
  const forwarding = execFileSync('sh', ['-c', 'cd /proc/sys/net/ipv4/conf; grep . */forwarding'], {
    encoding: 'utf8',
  });
  const processes = listDnsmasqs().join(' ');
  const otherNames =
    ip('link')
      .match(/altname \S+/g)
      ?.join(' ') ?? '';
  const parts = [links, otherNames, rules, forwarding, `dnsmasq: ${processes}`, ip('route')];
  return parts.join('\n---\n');
}

/** Of this network alone. */
export function listDnsmasqs(): readonly string[] {
  const { stdout } = spawnSync(
    'sh',
    [
      '-c',
      'own=$(readlink /proc/self/ns/net); for p in /proc/[0-9]*; do [ "$(readlink $p/ns/net)" = "$own" ] && [ "$(cat $p/comm 2>/dev/null)" = dnsmasq ] && echo ${p#/proc/}; done; true',
    ],
    { encoding: 'utf8' },
  );
  return stdout.split('\n').filter((pid) => pid !== '');
}

/**
 * Stops a dnsmasq until it is replaced, a few times at most. Only a dnsmasq that has answered is
 * known to hang, which a test cannot see.
 */
export async function haltDnsmasq(pid: string, whenHalted: () => Promise<void>): Promise<void> {
  const isThere = (): boolean => listDnsmasqs().includes(pid);
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(Number(pid), name);
    } catch (error) {
      // It may just have ended.
      if (isThere()) throw error;
    }
  };
  for (let tries = 0; tries < 5 && isThere(); tries += 1) {
    signal('SIGCONT');
    await delay(2000 * (tries + 1));
    signal('SIGSTOP');
    await whenHalted();
    const deadline = performance.now() + 30_000;
    while (isThere() && performance.now() < deadline) await delay(100);
  }
}

/**
 * Makes the surroundings of the host: an uplink with a network behind it, another bridge, and a DNS
 * server outside, which the host's resolv.conf names.
 * @returns a disposable that removes the rest
 */
export function makeSurroundings(root: string): Disposable {
  neighbour('out', 'up0', `${HOST_OUTSIDE}/24`, `${OUTSIDE}/24`);
  ip('route', 'add', 'default', 'via', OUTSIDE);
  // A cloud's metadata service behind the uplink must stay closed.
  ip('-n', 'out', 'address', 'add', '169.254.169.254/32', 'dev', 'lo');
  // Another bridge of the host, which has no default route.
  neighbour('other', 'ot0', '', '192.0.2.10/24');
  ip('-n', 'other', 'route', 'add', 'default', 'via', '192.0.2.1');
  ip('link', 'add', 'br9', 'type', 'bridge');
  ip('link', 'set', 'ot0', 'master', 'br9');
  ip('address', 'add', '192.0.2.1/24', 'dev', 'br9');
  ip('link', 'set', 'br9', 'up');
  const resolv = join(root, 'resolv.conf');
  writeFileSync(resolv, `nameserver ${OUTSIDE}\n`);
  execFileSync('mount', ['--bind', resolv, '/etc/resolv.conf']);
  const upstream = spawn(
    'ip',
    [
      ...['netns', 'exec', 'out', 'dnsmasq', '-d', '--conf-file=/dev/null', '--no-resolv'],
      ...['--no-hosts', `--address=/outside.test/${OUTSIDE}`, '--pid-file='],
    ],
    { stdio: 'ignore' },
  );
  return {
    [Symbol.dispose]: () => {
      upstream.kill('SIGKILL');
      execFileSync('umount', ['/etc/resolv.conf']);
    },
  };
}
