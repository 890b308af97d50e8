import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { silentLogger } from '#shared/log/log.ts';
import { upgradeOverSocket } from '#shared/socket/http-request.ts';
import {
  type ContentServer,
  startContentServer,
} from '../../../../noded/net/metad-link/content-server.ts';
import type { ServiceTarget } from '../../../../noded/net/metad-link/service-relay.ts';
import { ChannelLab, type Guest } from '../../../metad/support/channel-lab.ts';
import { exampleView } from '../../../metad/support/view-fixture.ts';
import {
  answerQuestion,
  type DnsResponder,
  encodeQuestion,
  EVERY_ADDRESS,
  startDnsResponder,
} from '../../support/dns-responder.ts';
import { openUdpClient, PATIENCE_MS, PORT, SERVICE, type UdpClient } from './udp-client.ts';

const NOBODY = 65_534;
const MAX_FLOWS = 64;

let lab: ChannelLab;
let content: ContentServer;
let dns: DnsResponder;
let revision = 1;
let protocol: 'tcp' | 'udp' = 'udp';
const guests: Guest[] = [];
const views: InstanceView[] = [0, 1].map((index) =>
  exampleView({
    name: `web${index}.example.com`,
    uuid: `00000000-1f3d-49e9-b2b7-00000000000${index}`,
    nics: [],
    channel: {
      device: `gnt.com.${index}`,
      mac: `52:54:00:e1:a3:4${index}`,
      ip: `169.254.0.${index + 1}`,
      hopLimit: 1,
    },
    limits: { requestsPerSecond: 200, burst: 400, connections: 8 },
  }),
);
const opened: Socket[] = [];

before(async () => {
  dns = await startDnsResponder();
  lab = await ChannelLab.create();
  content = await startContentServer({
    clock: systemClock,
    socketPath: lab.contentSocket,
    gid: NOBODY,
    logger: silentLogger,
    content: {
      openRelay: async () => ({ kind: 'refusal', status: 404, reason: 'no relay' }),
      findBootTree: async () => undefined,
      openMirror: async () => undefined,
      openImage: async () => undefined,
      openPackage: async () => undefined,
      issueToken: async () => ({ kind: 'refused', status: 403, reason: 'no identity' }),
      findService: async (uuid, name) => findService(uuid, name),
    },
  });
  for (const { channel } of views) guests.push(await lab.addGuest(channel));
});
after(async () => {
  for (const socket of opened) socket.close();
  dns.close();
  await content.close();
  await lab[Symbol.asyncDispose]();
});
beforeEach(async () => {
  for (const socket of opened.splice(0)) socket.close();
  dns.onQuestion = dns.answer;
  protocol = 'udp';
  await remove();
  await expose(true);
  dns.askers.length = 0;
});

/** Services of the node's record. */
function findService(uuid: string, name: string): ServiceTarget | undefined {
  const view = views.find((one) => one.uuid === uuid);
  if (!view || name !== 'dns') return undefined;
  const instance = { name: view.name, uuid, ip: view.channel.ip };
  const destination = { host: '127.0.0.1', hostPort: dns.port };
  return { instance, port: PORT, protocol, destination };
}

/** Each test has instances that have asked nothing yet. */
async function remove(): Promise<void> {
  for (const { uuid } of views) await lab.control('DELETE', `/v1/instances/${uuid}`);
  await until(async () => (await metric('datagram_flows')) === 0);
}

async function expose(isExposed: boolean): Promise<void> {
  const service = { name: 'dns', port: PORT, protocol: 'udp', host: '127.0.0.1' } as const;
  const services = isExposed ? [{ ...service, hostPort: dns.port }] : [];
  revision++;
  for (const view of views) {
    const answer = await lab.put({ ...view, services, revision });
    assert.equal(answer.status, 204, answer.body.toString());
  }
  if (!isExposed) return;
  // metad listens a moment after it has the view.
  await Promise.all(views.map((_, index) => untilAnswered(index)));
  await until(async () => (await metric('datagram_flows')) === views.length);
}

async function untilAnswered(index: number): Promise<void> {
  const client = fromGuest(index);
  await until(async () => {
    client.ask('up');
    return client.heard(1, 200);
  });
  client.socket.close();
  opened.splice(opened.indexOf(client.socket), 1);
}

/** Whether a socket of this host's has datagrams that its process has not read yet. */
function hasUnreadDatagrams(port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/udp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .some(([, address, , , queues]) => address?.endsWith(local) && !queues?.endsWith(':00000000'));
}

async function metric(name: string): Promise<number> {
  const text = (await lab.control('GET', '/metrics')).body.toString();
  return Number(new RegExp(`^gnt_metad_${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

const refused = (reason: string): Promise<number> =>
  metric(`refused_total\\{reason="${reason}"\\}`);

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`still not: ${isTrue.toString()}`);
    await sleep(10);
  }
}

/**
 * A device's sockets share addresses, so that of those for which the kernel chooses a port, two of
 * 84 have the same one in every ninth run: each gets its own here.
 */
let nextPort = 20_000;

function fromGuest(
  index: number,
  port = nextPort++,
  address = views[index]?.channel.ip ?? '',
): UdpClient {
  const client = openUdpClient({ namespace: guests[index]?.namespace, address, port });
  opened.push(client.socket);
  return client;
}

const answerTo = (name: string): Buffer => answerQuestion(encodeQuestion(name.length, name));

test("a guest's resolver gets the answer of the host's DNS server", async () => {
  const script = `const resolver = new (require('node:dns').promises.Resolver)({ timeout: 5000, tries: 2 });
    resolver.setServers(['${SERVICE}:${PORT}']);
    resolver.resolve4('www.example.org').then((found) => console.log(found.join()));`;
  const guest = guests[0] ?? assert.fail();
  assert.equal((await guest.run(process.execPath, '-e', script)).trim(), EVERY_ADDRESS);
});

test('a guest reaches the service over IPv6', async () => {
  // In a process of the guest's: a scope is a name of its namespace.
  const script = `const socket = require('node:dgram').createSocket('udp6');
    setTimeout(() => process.exit(1), 5000).unref();
    socket.on('message', (answer) => { console.log(answer.toString('hex')); socket.close(); });
    socket.send(Buffer.from('${encodeQuestion(3, 'six').toString('hex')}', 'hex'), ${PORT}, 'fe80::a9fe:a9fe%eth0');`;
  const guest = guests[0] ?? assert.fail();
  const answer = await guest.run(process.execPath, '-e', script);
  assert.equal(answer.trim(), answerTo('six').toString('hex'));
});

test('two guests with the same source port get their own answers, also late and in reverse order', async () => {
  const held: (() => void)[] = [];
  dns.onQuestion = (question, asker) => void held.push(() => dns.answer(question, asker));
  const clients = [0, 1].map((index) => fromGuest(index, 5353));
  const names = clients.map((_, index) =>
    Array.from({ length: 8 }, (__, number) => `n${number}.of-guest-${index}.example.org`),
  );
  for (let number = 0; number < 8; number++) {
    clients.forEach((client, index) => client.ask(names[index]?.[number] ?? ''));
    await until(() => held.length === 2 * (number + 1));
  }
  for (const answer of held.reverse()) answer();
  for (const [index, client] of clients.entries()) {
    assert.ok(await client.heard(8));
    assert.deepEqual(client.messages.toReversed(), names[index]?.map(answerTo));
  }
  assert.equal(new Set(dns.askers.map(({ port }) => port)).size, 2);
});

test('a datagram from a foreign source address gets no answer and does not reach the service', async () => {
  const guest = guests[0] ?? assert.fail();
  await guest.run('ip', 'addr', 'add', '169.254.9.9/16', 'dev', 'eth0');
  await lab.ip('route', 'append', '169.254.9.9/32', 'dev', 'gnt.com.0');
  try {
    const before = await refused('source');
    const spoofed = fromGuest(0, 0, '169.254.9.9');
    spoofed.ask('spoofed');
    await until(async () => (await refused('source')) === before + 1);
    const client = fromGuest(0);
    client.ask('genuine');
    assert.ok(await client.heard(1));
    assert.deepEqual([spoofed.messages.length, dns.askers.length], [0, 1]);
  } finally {
    await guest.run('ip', 'addr', 'del', '169.254.9.9/16', 'dev', 'eth0');
  }
});

test('a forged answer from another port does not reach the guest', async (t) => {
  const stranger = createSocket('udp4');
  t.after(() => stranger.close());
  dns.onQuestion = (question, asker) =>
    stranger.send('forged', asker.port, asker.address, () => dns.answer(question, asker));
  const client = fromGuest(0);
  for (const count of [1, 2]) {
    client.ask('www');
    assert.ok(await client.heard(count));
  }
  assert.deepEqual(client.messages, [answerTo('www'), answerTo('www')]);
});

test('at most eight of a hundred answers to one datagram reach the guest', async () => {
  let sent = 0;
  dns.onQuestion = (question, { port, address }) => {
    for (let count = 0; count < 100; count++)
      dns.socket.send(answerQuestion(question), port, address, () => (sent += 1));
  };
  const client = fromGuest(0);
  client.ask('loud');
  assert.ok(await client.heard(8));
  // A late answer would be counted for the next question.
  await until(() => sent === 100 && !hasUnreadDatagrams(dns.askers.at(-1)?.port ?? 0));
  dns.onQuestion = (_, asker) => dns.socket.send('last', asker.port, asker.address);
  client.ask('quiet');
  assert.ok(await client.heard(9));
  assert.equal(client.messages.at(-1)?.toString(), 'last');
  assert.equal(client.messages.length, 9);
});

test('fragmented datagrams of up to 4,096 bytes pass whole in both directions, and longer datagrams are dropped', async () => {
  dns.onQuestion = (question, { port, address }) =>
    dns.socket.send(Buffer.alloc(question.readUInt16BE(), question), port, address);
  const client = fromGuest(0);
  const sized = (bytes: number, answerBytes: number): Buffer => {
    const datagram = Buffer.alloc(bytes, 7);
    datagram.writeUInt16BE(answerBytes);
    return datagram;
  };
  const before = await refused('datagram');
  for (const datagram of [sized(4097, 2), sized(9000, 2), sized(20, 4097)]) client.send(datagram);
  await until(async () => (await refused('datagram')) === before + 2);
  client.send(sized(3000, 4096));
  client.send(sized(4096, 3000));
  assert.ok(await client.heard(2));
  assert.deepEqual(
    client.messages.map(({ length }) => length),
    [4096, 3000],
  );
  assert.equal(dns.askers.length, 3, 'what is too long reaches the service');
});

test('a guest that uses more ports than it may have flows keeps the maximum of flows and gets answers on all ports', async () => {
  const clients = Array.from({ length: MAX_FLOWS + 20 }, () => fromGuest(0));
  for (const [index, client] of clients.entries()) {
    // Datagrams may be lost, so the client asks again.
    const hears = async (): Promise<boolean> => {
      client.ask(`port${index}`);
      return client.heard(1, PATIENCE_MS / 2);
    };
    assert.ok((await hears()) || (await hears()), `port ${index} hears nothing`);
  }
  assert.equal(await metric('datagram_flows'), MAX_FLOWS + 1, 'and one of the other guest');
  clients[0]?.ask('again');
  assert.equal(await clients[0]?.heard(2), true);
});

test("during a guest's flood, its neighbour is answered, and metad's descriptors and memory stay bounded", async () => {
  const pid = String(lab.metadPid);
  const descriptors = (): number => readdirSync(`/proc/${pid}/fd`).length;
  const memoryKiB = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]);
  const [descriptorsBefore, memoryBefore] = [descriptors(), memoryKiB()];
  const flooders = Array.from({ length: 300 }, () => fromGuest(0));
  const neighbour = fromGuest(1);
  const payload = Buffer.alloc(1400, 7);
  let mostDescriptors = 0;
  let slowestMs = 0;
  for (let round = 0; round < 40; round++) {
    for (const flooder of flooders) flooder.send(payload);
    const askedAtMs = performance.now();
    neighbour.ask(`round${round}`);
    assert.ok(await neighbour.heard(round + 1, 5000), `round ${round} is not answered`);
    slowestMs = Math.max(slowestMs, performance.now() - askedAtMs);
    mostDescriptors = Math.max(mostDescriptors, descriptors());
  }
  assert.ok((await refused('rate')) > 1000, 'the flood is beyond the rate');
  assert.ok(slowestMs < 5000, `an answer took ${slowestMs} ms`);
  const more = mostDescriptors - descriptorsBefore;
  // A stream that is ended may take a turn to close.
  assert.ok(more <= 2 * MAX_FLOWS, `${more} descriptors more`);
  assert.ok((await metric('datagram_flows')) <= MAX_FLOWS + 2);
  const grownKiB = memoryKiB() - memoryBefore;
  assert.ok(grownKiB < 96 * 1024, `${grownKiB} KiB more`);
});

test('the flows of a removed service end, and later datagrams do not reach it', async () => {
  /** Those of the relay: the others of this process are the guests' and the DNS server's. */
  const sockets = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'UDPWrap').length -
    opened.length -
    1;
  const client = fromGuest(0);
  client.ask('open');
  assert.ok(await client.heard(1));
  await until(() => sockets() === views.length + 1);
  await expose(false);
  await until(async () => (await metric('datagram_flows')) === 0 && sockets() === 0);
  const asked = dns.askers.length;
  client.ask('late');
  assert.equal(await client.heard(2, 300), false);
  assert.equal(dns.askers.length, asked);
});

test('a guest gets answers from a restarted metad', async () => {
  const client = fromGuest(0);
  client.ask('before');
  assert.ok(await client.heard(1));
  await lab.stopMetad('SIGKILL');
  await lab.startMetad();
  await expose(true);
  client.ask('after');
  assert.ok(await client.heard(2));
  assert.deepEqual(client.messages, [answerTo('before'), answerTo('after')]);
});

test('a guest gets no answer from a stopped service, and gets answers once it runs again', async () => {
  const { port } = dns;
  dns.close();
  await once(dns.socket, 'close');
  const client = fromGuest(0);
  client.ask('nobody');
  assert.equal(await client.heard(1, 300), false);
  dns = await startDnsResponder(port);
  await until(async () => {
    client.ask('somebody');
    return client.heard(1, 200);
  });
});

test('the node refuses a connection to a UDP service and a datagram flow to a TCP service', async () => {
  const statusOf = async (kind: string, name: string): Promise<number | undefined> => {
    const path = `/v1/instances/${views[0]?.uuid}/${kind}/${name}`;
    const upgraded = await upgradeOverSocket({
      on: lab.contentSocket,
      path,
      headers: { host: 'noded' },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (upgraded.kind === 'refused') {
      upgraded.answer.destroy();
      return upgraded.answer.statusCode;
    }
    upgraded.socket.destroy();
    return 101;
  };
  assert.equal(await statusOf('datagrams', 'dns'), 101);
  assert.equal(await statusOf('services', 'dns'), 404);
  assert.equal(await statusOf('datagrams', 'other'), 404);
  protocol = 'tcp';
  assert.equal(await statusOf('datagrams', 'dns'), 404);
});
