import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ReachPolicy } from '#shared/contract/guest-reach.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  DEFAULT_FIRST_MACHINE_UID,
  planMachineUsers,
} from '../../../../noded/host/machine-users.ts';
import {
  createUserNicFirewall,
  type UserNicFirewall,
} from '../../../../noded/net/channel/user-nic-firewall.ts';

/**
 * A host and its cloud, a network namespace each: the cloud has the metadata services' addresses
 * and a web server of the internet, the host a service on loopback, which is on all its addresses.
 */
const HOST = `gnt-wall-h-${process.pid}`;
const CLOUD = `gnt-wall-c-${process.pid}`;
const table = 'gnt-test-machines';
const users = planMachineUsers(DEFAULT_FIRST_MACHINE_UID);
const servers: ChildProcess[] = [];
let policy: ReachPolicy = { confinesAll: false, networks: [] };
let directory: string;
let resolverFile: string;

const ip = (words: string): void => void execFileSync('ip', words.split(' '));

const SERVER = `
use IO::Socket::INET; $| = 1;
my @s = map { IO::Socket::INET->new(LocalAddr => '0.0.0.0', LocalPort => $_, Listen => 9, ReuseAddr => 1) or die $! } 80, 53;
print "up\\n";
while (1) { my $r = ''; vec($r, fileno($_), 1) = 1 for @s; select($r, undef, undef, undef);
  for (@s) { next unless vec($r, fileno($_), 1); my $c = $_->accept; close $c if $c } }
`;

async function serve(namespace: string): Promise<void> {
  const words = ['netns', 'exec', namespace, 'perl', '-e', SERVER];
  const server = spawn('ip', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(server);
  await once(server.stdout, 'data');
}

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-test-wall-'));
  resolverFile = join(directory, 'resolv.conf');
  await writeFile(resolverFile, 'nameserver 127.0.0.53\nnameserver 169.254.169.254\n');
  for (const name of [HOST, CLOUD]) ip(`netns add ${name}`);
  ip(`-n ${HOST} link add up0 type veth peer name down0 netns ${CLOUD}`);
  ip(`-n ${HOST} addr add 192.0.2.1/24 dev up0`);
  const cloud = ['192.0.2.2/24', '169.254.169.254/32', '168.63.129.16/32'];
  for (const address of [...cloud, '10.77.0.2/32', '192.168.7.2/32'])
    ip(`-n ${CLOUD} addr add ${address} dev down0`);
  ip(`-n ${HOST} addr add 2001:db8::1/64 dev up0 nodad`);
  ip(`-n ${CLOUD} addr add 2001:db8::2/64 dev down0 nodad`);
  for (const link of ['lo', 'up0']) ip(`-n ${HOST} link set ${link} up`);
  for (const link of ['lo', 'down0']) ip(`-n ${CLOUD} link set ${link} up`);
  ip(`-n ${HOST} route add default via 192.0.2.2`);
  await serve(HOST);
  await serve(CLOUD);
});

after(async () => {
  for (const server of servers) {
    const ended = once(server, 'exit');
    server.kill();
    await ended;
  }
  for (const name of [HOST, CLOUD]) ip(`netns del ${name}`);
  await rm(directory, { recursive: true });
});

const CONNECT = `use IO::Socket::INET;
print IO::Socket::INET->new(PeerAddr => $_, Timeout => 5) ? "$_ open\\n" : "$_ closed\\n" for @ARGV`;

/** The addresses that a process of this user on the host gets a connection to. */
function reaches(uid: number, ...addresses: readonly string[]): readonly string[] {
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
  const words = ['netns', 'exec', HOST, ...user, 'perl', '-e', CONNECT, ...addresses];
  const { stdout, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
  assert.equal(stderr, '');
  return stdout.split('\n').flatMap((line) => (line.endsWith(' open') ? [line.slice(0, -5)] : []));
}

const hostAddresses = ['127.0.0.1:80', '127.8.8.8:80', '192.0.2.1:80'];
const cloudAddresses = ['169.254.169.254:80', '168.63.129.16:80'];
const resolvers = ['127.0.0.53:53', '169.254.169.254:53'];
const internet = '192.0.2.2:80';
const everything = [...hostAddresses, ...cloudAddresses, ...resolvers, internet];

function createWall(isOpen = false): UserNicFirewall {
  const namespacePath = `/run/netns/${HOST}`;
  return createUserNicFirewall({
    ...{ table, users, isOpen, logger: silentLogger, namespacePath, resolverFile },
    readPolicy: () => Promise.resolve(policy),
  });
}

function tables(): string {
  return execFileSync('ip', ['netns', 'exec', HOST, 'nft', 'list', 'tables'], { encoding: 'utf8' });
}

test("a QEMU user reaches the internet and its resolvers, and neither the host nor its cloud's metadata", async () => {
  await using wall = createWall();
  assert.deepEqual(reaches(users.first + 7, ...everything), everything);
  await wall.raiseFor('a');
  for (const uid of [users.first + 1, users.first + 7, users.last])
    assert.deepEqual(reaches(uid, ...everything), [...resolvers, internet]);
  assert.deepEqual(reaches(1000, ...everything), everything);
  assert.deepEqual(reaches(users.last + 1, ...everything), everything);
  assert.deepEqual(reaches(users.first + 7, '127.0.0.1:53', '192.0.2.1:53'), []);
  await wall.lowerFor('a');
});

const SEND = String.raw`use IO::Socket::IP;
for (@ARGV) { my ($host, $port) = /^\[?(.*?)\]?:(\d+)$/;
  my $s = IO::Socket::IP->new(Proto => 'udp', PeerHost => $host, PeerService => $port, Broadcast => 1);
  print "$_ sent\n" if $s && $s->send('x') }`;

test('a QEMU user sends no multicast and no broadcast datagrams', async () => {
  await using wall = createWall();
  const groups = [
    '224.0.0.251:5353',
    '239.255.255.250:1900',
    '255.255.255.255:68',
    '192.0.2.255:9',
    ...['[ff02::1%up0]:9', '[ff02::fb%up0]:5353', '[ff05::c]:1900', '[ff0e::101]:123'],
  ];
  const others = ['192.0.2.2:9', '[2001:db8::2]:9'];
  const sent = (uid: number): readonly string[] => {
    const user = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
    const words = ['netns', 'exec', HOST, ...user, 'perl', '-e', SEND, ...groups, ...others];
    const { stdout } = spawnSync('ip', words, { encoding: 'utf8' });
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [line.replace(' sent', '')]));
  };
  assert.deepEqual(sent(users.first + 7), [...groups, ...others]);
  await wall.raiseFor('a');
  assert.deepEqual(sent(users.first + 7), others);
  assert.deepEqual(sent(1000), [...groups, ...others]);
  await wall.lowerFor('a');
});

test('the rules stay until the last instance is removed, and are restored after a flush', async () => {
  await using wall = createWall();
  await wall.raiseFor('a');
  await wall.raiseFor('b');
  await wall.lowerFor('a');
  assert.match(tables(), new RegExp(table));
  execFileSync('ip', ['netns', 'exec', HOST, 'nft', 'flush', 'ruleset']);
  await wall.tidy();
  assert.deepEqual(reaches(users.first + 7, '127.0.0.1:80', internet), [internet]);
  await writeFile(resolverFile, 'nameserver 192.0.2.1\n');
  await wall.tidy();
  assert.deepEqual(reaches(users.first + 7, '127.0.0.53:53', '192.0.2.1:53'), ['192.0.2.1:53']);
  await wall.lowerFor('b');
  await wall.lowerFor('b');
  assert.equal(tables(), '');
});

test('unused rules of a previous daemon are removed', async () => {
  {
    await using wall = createWall();
    await wall.raiseFor('a');
  }
  assert.match(tables(), new RegExp(table));
  await using successor = createWall();
  await successor.tidy();
  assert.equal(tables(), '');
});

test('a QEMU user reaches private networks only after it is opened, and other users do not', async () => {
  const [own, other] = [users.first + 7, users.first + 8];
  const inner = ['10.77.0.2:80', '192.168.7.2:80'];
  await using wall = createWall();
  await wall.raiseFor('a');
  assert.deepEqual(reaches(own, ...inner, internet), [internet]);
  await wall.openFor('a', own);
  assert.deepEqual(reaches(own, ...inner, internet), [...inner, internet]);
  assert.deepEqual(reaches(other, ...inner), []);
  assert.deepEqual(reaches(own, ...hostAddresses), []);

  policy = { confinesAll: true, networks: ['10.77.0.0/16'] };
  await wall.raiseFor('b');
  assert.deepEqual(reaches(own, ...inner), ['10.77.0.2:80']);
  policy = { confinesAll: false, networks: [] };
  await wall.lowerFor('a');
  await wall.raiseFor('c');
  assert.deepEqual(reaches(own, ...inner), [], 'another machine may have its number next');
  for (const machine of ['b', 'c']) await wall.lowerFor(machine);
});

test('a host that is open to instances gives them no access to private networks', async () => {
  await using wall = createWall(true);
  await wall.raiseFor('a');
  assert.deepEqual(reaches(users.first + 7, ...everything, '10.77.0.2:80'), everything);
  await wall.lowerFor('a');
  assert.equal(tables(), '');
});
