import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmod, rm, writeFile } from 'node:fs/promises';
import { createServer, Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceView, ViewService } from '#shared/contract/view.ts';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { run } from '#shared/process/run.ts';
import { inNetworkNamespace, openDeviceClientSocket } from '#shared/sys/network-sockets.ts';
import { MIB } from '#shared/units/bytes.ts';
import { SERVICE_BUFFER_BYTES } from '../../../../metad/config/limits.ts';
import {
  type ContentServer,
  startContentServer,
} from '../../../../noded/net/metad-link/content-server.ts';
import { proxyHeader } from '../../../../noded/net/metad-link/proxy-header.ts';
import type { ServiceTarget } from '../../../../noded/net/metad-link/service-relay.ts';
import { ChannelLab, type Guest } from '../../../metad/support/channel-lab.ts';
import { exampleView } from '../../../metad/support/view-fixture.ts';
import { listenOnLoopback } from '../../../lab/listen-on-loopback.ts';

const PORT = 3142;
const NOBODY = 65_534;
let lab: ChannelLab;
let guest: Guest;
let content: ContentServer;
let view: InstanceView;
let hostPort: number;
let revision = 1;
/** Services of the node's record. */
const targets = new Map<string, ServiceTarget>();
/** The service keeps each connection, its received bytes, and whether the client has ended. */
const accepted: { socket: Socket; received: () => Buffer; ended: () => boolean }[] = [];
const server = createServer({ allowHalfOpen: true }, (socket) => {
  const chunks: Buffer[] = [];
  let hasEnded = false;
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('end', () => (hasEnded = true));
  socket.on('error', () => undefined);
  accepted.push({ socket, received: () => Buffer.concat(chunks), ended: () => hasEnded });
});
const opened: Socket[] = [];

before(async () => {
  hostPort = await listenOnLoopback(server);
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
      findService: async (uuid, name) => targets.get(`${uuid}/${name}`),
    },
  });
  view = exampleView({ limits: { requestsPerSecond: 1000, burst: 1000, connections: 3 } });
  guest = await lab.addGuest(view.channel);
});
after(async () => {
  for (const socket of opened) socket.destroy();
  for (const { socket } of accepted) socket.destroy();
  server.close();
  await content.close();
  await lab[Symbol.asyncDispose]();
});
beforeEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  for (const { socket } of accepted.splice(0)) socket.destroy();
  const { uuid, name, channel } = view;
  targets.set(`${uuid}/apt`, {
    instance: { name, uuid, ip: channel.ip },
    port: PORT,
    protocol: 'tcp',
    destination: { host: '127.0.0.1', hostPort },
  });
  await expose([{ name: 'apt', port: PORT, host: '127.0.0.1', hostPort }]);
  await until(async () => (await openConnections()) === 0);
});

async function expose(services: readonly ViewService[]): Promise<void> {
  const answer = await lab.put({ ...view, services: [...services], revision: ++revision });
  assert.equal(answer.status, 204, answer.body.toString());
}

async function openConnections(): Promise<number> {
  const text = (await lab.control('GET', '/metrics')).body.toString();
  return Number(/^gnt_metad_connections (\d+)$/m.exec(text)?.[1]);
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`still not: ${isTrue.toString()}`);
    await sleep(10);
  }
}

/** The reset may arrive before the `connect` event. */
async function assertReset(connecting: Promise<Socket>, reached = 0): Promise<void> {
  await assert.rejects(async () => {
    await once(await connecting, 'close', { signal: AbortSignal.timeout(10_000) });
  }, /ECONNRESET/);
  assert.equal(accepted.length, reached);
}

async function fromGuest(localAddress?: string): Promise<Socket> {
  const fd = inNetworkNamespace(`/run/netns/${guest.namespace}`, () =>
    openDeviceClientSocket('eth0'),
  );
  const socket = new Socket({ fd, allowHalfOpen: true, readable: true, writable: true });
  opened.push(socket);
  socket.connect({ host: '169.254.169.254', port: PORT, ...(localAddress && { localAddress }) });
  await once(socket, 'connect');
  return socket;
}

test('the service gets a PROXY header that names the guest of the connection', async () => {
  const socket = await fromGuest();
  socket.write('GET');
  await until(() => accepted[0]?.received().toString('latin1').endsWith('GET') === true);
  const { name, uuid, channel } = view;
  assert.deepEqual(
    accepted[0]?.received(),
    Buffer.concat([
      proxyHeader({ name, uuid, ip: channel.ip }, socket.localPort ?? 0, PORT),
      Buffer.from('GET'),
    ]),
  );
});

test('the first bytes of a service reach a guest that has sent nothing', async () => {
  const socket = await fromGuest();
  await until(() => accepted.length === 1);
  accepted[0]?.socket.write('220 ready');
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  assert.equal(chunk.toString(), '220 ready');
});

/** Bytes of guests that the kernel has taken, and metad has not. */
async function unreadBytes(): Promise<number> {
  const words = ['netns', 'exec', lab.namespace, 'ss', '-tnH', 'sport', '=', `:${PORT}`];
  const { stdout } = await run('ip', words);
  const lines = stdout.trim().split('\n');
  return lines.reduce((sum, line) => sum + Number(line.split(/\s+/)[1] ?? 0), 0);
}

test('the kernel buffers little for a fast service that stops reading', async () => {
  const socket = await fromGuest();
  await until(() => accepted.length === 1);
  const service = accepted[0]?.socket;
  let bytes = 0;
  service?.on('data', (chunk: Buffer) => {
    if ((bytes += chunk.length) > 40 * MIB) service.pause();
  });
  const content = Buffer.alloc(MIB);
  const more = (error?: Error | null): void => {
    if (!error) socket.write(content, more);
  };
  more();
  await until(() => service?.isPaused() === true);
  let held = 0;
  for (let before = -1; held !== before || held === 0; await sleep(100)) {
    before = held;
    held = await unreadBytes();
  }
  assert.ok(held <= 2 * SERVICE_BUFFER_BYTES, `${held} bytes`);
});

test('each direction ends separately, and ten megabytes arrive whole', async () => {
  const socket = await fromGuest();
  const sent = Buffer.alloc(10 * 1024 * 1024, 7);
  socket.end(sent);
  await until(() => accepted[0]?.ended() === true);
  assert.ok(accepted[0]?.received().subarray(-sent.length).equals(sent));
  let answered = 0;
  socket.on('data', (chunk: Buffer) => (answered += chunk.length));
  accepted[0]?.socket.end(sent);
  await once(socket, 'end');
  assert.equal(answered, sent.length);
});

test('a guest reaches the service over IPv6', async () => {
  const script = `exec 3<>/dev/tcp/fe80::a9fe:a9fe%eth0/${PORT}; echo hello >&3; timeout 10 cat <&3`;
  const answer = guest.run('timeout', '15', 'bash', '-c', script);
  await until(() => accepted[0]?.received().toString('latin1').endsWith('hello\n') === true);
  accepted[0]?.socket.end('good bye');
  assert.equal(await answer, 'good bye');
});

test('the open connections of a removed service end, and new connections are refused', async () => {
  const socket = await fromGuest();
  await until(() => accepted.length === 1);
  const broken = once(socket, 'error');
  await expose([]);
  await broken;
  await until(() => accepted[0]?.ended() === true);
  await assert.rejects(fromGuest(), /ECONNREFUSED/);
  assert.equal(await openConnections(), 0);
});

test('connections end when the view is deleted', async () => {
  const socket = await fromGuest();
  await until(() => accepted.length === 1);
  socket.on('error', () => undefined);
  await lab.control('DELETE', `/v1/instances/${view.uuid}`);
  await until(() => accepted[0]?.ended() === true);
});

test('a connection that the guest resets ends at the service', async () => {
  const socket = await fromGuest();
  socket.end('last words');
  await until(() => accepted[0]?.ended() === true);
  socket.resetAndDestroy();
  await until(() => {
    accepted[0]?.socket.write('is anybody there?');
    return accepted[0]?.socket.destroyed === true;
  });
});

test('connections to services count against the connection limit of an instance', async () => {
  for (let count = 0; count < 3; count++) await fromGuest();
  await until(() => accepted.length === 3);
  await assertReset(fromGuest(), 3);
});

test('a connection to a service that the node does not know is reset', async () => {
  targets.delete(`${view.uuid}/apt`);
  await assertReset(fromGuest());
});

test('a connection to a closed service port or from a foreign address is reset', async () => {
  await guest.run('ip', 'addr', 'add', '169.254.9.9/16', 'dev', 'eth0');
  await lab.ip('route', 'append', '169.254.9.9/32', 'dev', view.channel.device);
  await assertReset(fromGuest('169.254.9.9'));
  const target = targets.get(`${view.uuid}/apt`) ?? assert.fail();
  targets.set(`${view.uuid}/apt`, { ...target, destination: { host: '127.0.0.1', hostPort: 1 } });
  await assertReset(fromGuest());
});

test('a service on a unix socket gets connections, unless every user may connect to the socket', async () => {
  const socketPath = join(lab.directory, 'service.sock');
  const unixServer = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (header) => socket.end(header));
  });
  unixServer.listen(socketPath);
  await once(unixServer, 'listening');
  await chmod(lab.directory, 0o755);
  const target = targets.get(`${view.uuid}/apt`) ?? assert.fail();
  targets.set(`${view.uuid}/apt`, { ...target, destination: { socketPath } });
  await expose([{ name: 'apt', port: PORT, socketPath }]);
  try {
    await chmod(socketPath, 0o666);
    await assertReset(fromGuest());
    for (const [mode, folderMode] of [
      [0o600, 0o755],
      [0o666, 0o750],
    ] as const) {
      await chmod(socketPath, mode);
      await chmod(lab.directory, folderMode);
      const header = Buffer.concat(
        await Array.fromAsync((await fromGuest()) as AsyncIterable<Buffer>),
      );
      assert.ok(header.includes('QUIT') && header.includes(view.name), header.toString('latin1'));
    }
    await chmod(lab.directory, 0o755);
    await rm(socketPath);
    await writeFile(socketPath, '');
    await assertReset(fromGuest());
  } finally {
    unixServer.close();
  }
});
