import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, test } from 'node:test';
import { metadStatus } from '#shared/contract/metad-control.ts';
import { run } from '#shared/process/run.ts';
import { inNetworkNamespace, openDeviceSocket } from '#shared/sys/network-sockets.ts';
import { ChannelLab } from './support/channel-lab.ts';
import type { Guest } from './support/channel-lab.ts';
import { eventsAfter } from './support/control-events.ts';
import { askFromGuest } from './support/guest-http.ts';
import { exampleView } from './support/view-fixture.ts';

const view = exampleView();
const BASE = `/v1/instances/${view.uuid}`;
let lab: ChannelLab;
let guest: Guest;

before(async () => {
  lab = await ChannelLab.create();
  guest = await lab.addGuest(view.channel);
  assert.equal((await lab.put(view)).status, 204);
});
after(async () => {
  await lab[Symbol.asyncDispose]();
});

async function write(body: string): Promise<void> {
  await askFromGuest(guest.namespace, '/ganeti/latest/write', { method: 'POST', body });
}

test('the control socket has mode 0600, and the status lists the served instances', async () => {
  assert.equal((await stat(lab.controlSocket)).mode & 0o777, 0o600);
  const answer = await lab.control('GET', '/v1/status');
  const status = metadStatus.parse(JSON.parse(answer.body.toString()));
  assert.deepEqual(status.instances, [
    { uuid: view.uuid, revision: 1, device: 'gnt.com.0', mode: 'run' },
  ]);
});

test('metad runs as uid 65534 without capabilities', async () => {
  const status = await readFile(`/proc/${lab.metadPid}/status`, 'utf8');
  assert.match(status, /^CapEff:\t0+$/m);
  assert.match(status, /^CapBnd:\t0+$/m);
  assert.match(status, /^NoNewPrivs:\t1$/m);
  assert.match(status, /^Uid:\t65534\t/m);
});

test('events from before a reader connects are delivered, and new events follow', async () => {
  await write('abc');
  await askFromGuest(guest.namespace, '/ganeti/latest/ready', {
    method: 'POST',
    headers: { 'user-agent': 'Cloud-Init/22.4.2' },
    body: 'instance_id=x&hostname=web1',
  });
  const kept = await eventsAfter(lab, 0, 2);
  assert.deepEqual(
    kept.map(({ event }) => event),
    [
      { type: 'written', bytes: 3 },
      { type: 'ready', source: 'cloud-init', text: 'instance_id=x&hostname=web1' },
    ],
  );
  const last = kept.at(-1)?.sequence ?? 0;
  const live = eventsAfter(lab, last, 1);
  await write('de');
  assert.deepEqual((await live)[0]?.event, { type: 'written', bytes: 2 });
});

test('sequence numbers increase across a restart of metad', async () => {
  await write('x');
  const before = (await eventsAfter(lab, 0, 1)).at(-1)?.sequence ?? Infinity;
  await lab.stopMetad();
  await lab.startMetad();
  await lab.put(view);
  await write('y');
  const [event] = await eventsAfter(lab, before, 1);
  assert.ok((event?.sequence ?? 0) > before);
});

test('the tree shows the guest’s paths, with private and secret values masked', async () => {
  const listing = await lab.control('GET', `${BASE}/tree/ganeti/latest/`);
  assert.match(listing.body.toString(), /^meta_data\.json$/m);
  const answer = await lab.control('GET', `${BASE}/tree/ganeti/latest/os/parameters.json`);
  assert.deepEqual(JSON.parse(answer.body.toString()), {
    dhcp: ['yes', 'public'],
    hostkey: ['<redacted>', 'private'],
    rootpw: ['<redacted>', 'secret'],
  });
  assert.match((await lab.control('GET', `${BASE}/tree`)).body.toString(), /^ganeti\/$/m);
  assert.equal((await lab.control('GET', `${BASE}/tree/nothing`)).status, 404);
});

test('unknown instances and paths get 404, and malformed or mismatched views are refused', async () => {
  const other = '/v1/instances/00000000-0000-0000-0000-000000000000';
  for (const path of [`${other}/tree`, `${other}/queue`]) {
    const answer = await lab.control('GET', path);
    assert.equal(answer.status, 404);
    assert.match(answer.body.toString(), /INSTANCE_NOT_FOUND/);
  }
  assert.equal((await lab.control('GET', '/v1/nothing')).status, 404);
  assert.equal((await lab.control('PUT', BASE, '{')).status, 400);
  const mismatch = await lab.control('PUT', other, JSON.stringify(view));
  assert.match(mismatch.body.toString(), /uuid: differs from the path/);
});

/** Opens a raw stream to a port of the guest through the control socket. */
async function connectTo(port: number): Promise<Duplex | { status: number; body: string }> {
  return await new Promise((resolve, reject) => {
    const outgoing = request({
      socketPath: lab.controlSocket,
      path: `${BASE}/connect/${port}`,
      headers: { connection: 'Upgrade', upgrade: 'tcp' },
    });
    outgoing.on('upgrade', (_response, socket: Duplex) => resolve(socket));
    outgoing.on('response', (incoming) => {
      let body = '';
      incoming.on('data', (chunk: Buffer) => (body += chunk.toString()));
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body }));
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

test('replaced tokens are refused where tokens are required, and a new token is accepted', async () => {
  const served = await lab.put({ ...view, revision: view.revision + 1, metadataToken: 'required' });
  assert.equal(served.status, 204);
  const makeToken = async (): Promise<string> => {
    const answer = await askFromGuest(guest.namespace, '/latest/api/token', {
      method: 'PUT',
      headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
    });
    return answer.body.toString();
  };
  const statusWith = async (token: string): Promise<number> => {
    const headers = { 'x-aws-ec2-metadata-token': token };
    const answer = await askFromGuest(guest.namespace, '/latest/meta-data/', { headers });
    return answer.status;
  };
  const old = await makeToken();
  assert.equal(await statusWith(old), 200);
  assert.equal((await lab.control('DELETE', `${BASE}/tokens`)).status, 204);
  assert.equal(await statusWith(old), 401);
  assert.equal(await statusWith(await makeToken()), 200);
  const unknown = '/v1/instances/00000000-0000-4000-8000-000000000000/tokens';
  assert.equal((await lab.control('DELETE', unknown)).status, 404);
});

test('a connection to a port of the guest passes bytes both ways, and half-closes', async () => {
  const fd = inNetworkNamespace(`/run/netns/${guest.namespace}`, () =>
    openDeviceSocket({ device: 'eth0', type: 'tcp', address: '0.0.0.0', port: 22 }),
  );
  // A guest that answers only after the end of its input.
  const server = createServer({ allowHalfOpen: true }, (socket: Socket) => {
    let length = 0;
    socket.on('data', (chunk) => (length += chunk.length));
    socket.on('end', () => socket.end(`got ${length}`));
  });
  server.listen({ fd });
  try {
    const stream = await connectTo(22);
    assert.ok('write' in stream);
    stream.end(Buffer.alloc(3_000_000));
    let text = '';
    stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await once(stream, 'end');
    assert.equal(text, 'got 3000000');
  } finally {
    server.close();
  }
});

test('a connection to a closed port of the guest gets 502 GUEST_UNREACHABLE', async () => {
  const answer = await connectTo(23);
  assert.ok('status' in answer);
  assert.equal(answer.status, 502);
  assert.match(answer.body, /GUEST_UNREACHABLE/);
  assert.match(answer.body, /port 23 of web1\.example\.com/);
});

test('SIGTERM ends metad with status 0 and removes its socket, and metad replaces the socket of a killed metad', async () => {
  assert.equal(await lab.stopMetad('SIGTERM'), 0);
  await assert.rejects(stat(lab.controlSocket), { code: 'ENOENT' });
  await lab.startMetad();
  await lab.stopMetad('SIGKILL');
  await stat(lab.controlSocket);
  await lab.startMetad();
  await assert.rejects(askFromGuest(guest.namespace, '/'), { code: 'ECONNREFUSED' });
  assert.equal((await lab.put(view)).status, 204);
  assert.equal((await askFromGuest(guest.namespace, '/')).status, 200);
});

test('the tree shows a document with lost secrets only with partial=true, and its secrets as null', async () => {
  await lab.stopMetad();
  await lab.startMetad();
  const rootpw = { value: null, visibility: 'secret' } as const;
  const lost = { ...view, osParameters: { ...view.osParameters, rootpw }, revision: 2 };
  assert.equal((await lab.put(lost)).status, 204);
  const path = `${BASE}/tree/ganeti/latest/os/parameters.json`;
  assert.equal((await lab.control('GET', path)).status, 410);
  const partial = await lab.control('GET', `${path}?partial=true`);
  assert.deepEqual(JSON.parse(partial.body.toString()), {
    dhcp: ['yes', 'public'],
    hostkey: ['<redacted>', 'private'],
    rootpw: [null, 'secret'],
  });
});

test('a second metad refuses to start on the socket of a running metad', async () => {
  const pid = lab.metadPid;
  await assert.rejects(
    run(process.execPath, [
      ...['metad/main.ts', '--control-socket', lab.controlSocket],
      ...['--content-socket', lab.contentSocket],
    ]),
    /another gnt-metad is listening/,
  );
  assert.equal(lab.metadPid, pid);
  assert.equal((await lab.control('GET', '/v1/status')).status, 200);
});
