import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import {
  type GuestConnection,
  guestState,
  type GuestState,
} from '#shared/contract/guest-handover.ts';
import { NO_PROGRESS } from '#shared/contract/lifecycle.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';
import { endConnections } from '../../noded/net/channel/end-connections.ts';
import { listConnections, type ListedChannel } from '../../noded/net/channel/list-connections.ts';
import { planBaseRules, planTapRules } from '../../noded/net/channel/nft-rules.ts';
import { applyNftCommands } from '../../noded/net/channel/nft.ts';
import { type Answer, ChannelLab, type Guest } from './support/channel-lab.ts';
import { eventsUntil } from './support/control-events.ts';
import { askFromGuest, connectFromGuest } from './support/guest-http.ts';
import { lifecycleOf, scriptOf } from './support/lifecycle-fixture.ts';
import { exampleView } from './support/view-fixture.ts';

/** Two hosts with a metad each, and a guest whose wire moves from one to the other. */
const view = exampleView({ metadataToken: 'required' });
const PATH = `/v1/instances/${view.uuid}`;
const LIMIT_MS = 20_000;
const BOOT = '22222222-2222-4222-8222-222222222222';
const COMMAND = '33333333-3333-4333-8333-333333333333';

let source: ChannelLab;
let target: ChannelLab;
let guest: Guest;

before(async () => {
  source = await ChannelLab.create();
  target = await ChannelLab.create();
});
beforeEach(async () => {
  guest = await source.addGuest(view.channel);
  assert.equal((await source.put(view)).status, 204);
});
after(async () => {
  await source[Symbol.asyncDispose]();
  await target[Symbol.asyncDispose]();
});

async function leave(): Promise<GuestState> {
  const { status, body } = await source.control('POST', `${PATH}/leave`);
  assert.equal(status, 200, body.toString());
  return guestState.parse(JSON.parse(body.toString()));
}

/** Moves the wire to the other host until the end of the test. */
async function move(
  t: { after(ended: () => Promise<void>): void },
  shown: InstanceView = view,
): Promise<{ readonly connections: readonly GuestConnection[] }> {
  const connections = await listConnections(channelAt(source));
  const state = await leave();
  await target.takeOver(source, view.channel);
  const { device } = view.channel;
  await applyNftCommands(
    `/run/netns/${target.namespace}`,
    `${planBaseRules()}${planTapRules(device, view.channel)}`,
  );
  t.after(async () => {
    await target.control('DELETE', PATH);
    await target.disconnect(view.channel.device);
  });
  await source.control('DELETE', PATH);
  assert.equal((await target.put(shown)).status, 204);
  const { status, body } = await target.control('PUT', `${PATH}/arrive`, JSON.stringify(state));
  assert.equal(status, 204, body.toString());
  return { connections };
}

function channelAt(lab: ChannelLab): ListedChannel {
  const { device, ip: guestIp } = view.channel;
  return { namespacePath: `/run/netns/${lab.namespace}`, device, guestIp };
}

/** Resets the connections as noded does when the guest continues. */
function endMoved(connections: readonly GuestConnection[]): void {
  endConnections({ ...channelAt(target), connections });
}

/** Waits until metad has answered and closed its side of all connections. */
async function untilAnswered(): Promise<void> {
  const { namespacePath, device } = channelAt(source);
  const args = [`--net=${namespacePath}`, 'ss', '-Htn', `dev = ${device}`];
  const deadlineMs = performance.now() + LIMIT_MS;
  for (let text = ''; !/FIN-WAIT-1|CLOSING|LAST-ACK/.test(text);) {
    assert.ok(performance.now() < deadlineMs, text);
    ({ stdout: text } = await run('nsenter', args));
  }
}

async function ask(path: string, token = '', body?: string): Promise<Answer> {
  return askFromGuest(guest.namespace, path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'x-aws-ec2-metadata-token': token },
    body,
    signal: AbortSignal.timeout(LIMIT_MS),
  });
}

async function newToken(): Promise<string> {
  const { body } = await askFromGuest(guest.namespace, '/latest/api/token', {
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
  });
  return body.toString();
}

test('a guest that moved to another host keeps its token and the queued bytes of both directions', async (t) => {
  const token = await newToken();
  await source.control('POST', `${PATH}/queue`, 'read and gone, ');
  await ask('/ganeti/latest/read', token);
  await source.control('POST', `${PATH}/queue`, 'for the guest');
  await ask('/ganeti/latest/write', token, 'for the host');
  await move(t);
  const read = await ask('/ganeti/latest/read', token);
  assert.deepEqual([read.status, read.body.toString()], [200, 'for the guest']);
  assert.equal(read.headers['x-gnt-offset'], '28', 'its bytes are numbered on');
  const written = await target.control('GET', `${PATH}/queue`);
  assert.equal(written.body.toString(), 'for the host');
  assert.equal((await ask('/ganeti/latest/read', `${token.slice(0, -2)}AA`)).status, 401);
  assert.equal((await ask('/ganeti/latest/read', await newToken())).status, 204);
});

test('output of a moved guest masks lost secrets and the command variables of its former host', async (t) => {
  const token = await newToken();
  const rootpw = { value: null, visibility: 'secret' as const };
  const osParameters = { ...view.osParameters, rootpw };
  const lists = { boot: [], operational: [scriptOf('01-now', 'true')], decommission: [] };
  const up = { lists, state: 'operational' as const };
  const progress = { ...NO_PROGRESS, boot: BOOT, number: 2, entry: COMMAND };
  const next = { do: 'run', entry: COMMAND, script: '01-now' } as const;
  const commanded = {
    ...{ ...lifecycleOf({ ...up, next }), progress },
    commandEnv: { WORD: { text: 'hush-hush' } },
  };
  const asked = { ...view, revision: 2, lifecycle: commanded };
  assert.equal((await source.put(asked, '?guest=up')).status, 204);
  // The view of the other node lacks the command, and both views lack the secret.
  const lifecycle = { ...lifecycleOf(up), progress };
  await move(t, { ...view, revision: 3, osParameters, lifecycle });
  const arrived = { ...view, revision: 4, lifecycle };
  const post = async (path: string, body: string): Promise<void> => {
    assert.equal((await ask(`/ganeti/latest/${path}`, token, body)).status, 204);
  };
  const said = async (isLast: (event: MetadEvent['event']) => boolean): Promise<string> =>
    JSON.stringify(await eventsUntil(target, 0, (some) => some.some(({ event }) => isLast(event))));
  const status = { v1: { 'modules-final': { errors: ['it is s3cret-value'] } } };
  await post('boot/events', JSON.stringify({ name: 'init-local', event_type: 'start' }));
  await post('boot/status', JSON.stringify(status));
  const lost = await said(({ type }) => type === 'boot-result');
  assert.match(lost, /"<redacted>"/);
  assert.doesNotMatch(lost, /s3cret/);
  // Once the secret is given again, lines are reported.
  assert.equal((await target.put(arrived, '?guest=up')).status, 204);
  const path = `lifecycle/output?entry=${COMMAND}&offset=0`;
  await post(path, 'it is hush-hush, and S3CRET\n\n');
  const output = await said(({ type }) => type === 'lifecycle-output');
  assert.match(output, /it is <redacted>, and <redacted>/);
});

test('waiting and idle connections of a guest are reset after its move', async (t) => {
  const token = await newToken();
  const resource = '/ganeti/latest/meta_data.json';
  const { headers } = await ask(resource, token);
  const etag = encodeURIComponent(String(headers.etag));
  const waiting = [
    `${resource}?wait_for_change=true&timeout_sec=300&last_etag=${etag}`,
    '/ganeti/latest/read?wait=60',
  ].map((path) => assert.rejects(ask(path, token), { code: 'ECONNRESET' }));
  const idle = connectFromGuest(guest.namespace).resume();
  const idleEnded = new Promise((resolve) => idle.on('error', resolve));
  await new Promise((resolve) => idle.once('connect', resolve));
  await new Promise((resolve) => setTimeout(resolve, 200));
  // Packets of the old host must not reach the guest, as if it were paused.
  await source.ip('link', 'set', view.channel.device, 'down');
  const { connections } = await move(t);
  assert.equal(connections.length, 3);
  endMoved(connections);
  await Promise.all(waiting);
  await idleEnded;
  assert.equal((await ask('/ganeti/latest/read', token)).status, 204);
});

test('a connection whose answer did not reach the guest before a move is reset', async (t) => {
  const socket = connectFromGuest(guest.namespace).resume();
  const ended = new Promise<Error>((resolve) => socket.on('error', resolve));
  await new Promise((resolve) => socket.once('connect', resolve));
  // As with a paused guest: its request was taken, and no byte of the answer arrives.
  const table =
    'table ip still { chain in { type filter hook input priority 0; ip length > 60 drop; }; }';
  await applyNftCommands(`/run/netns/${guest.namespace}`, table);
  socket.end('GET / HTTP/1.0\r\nHost: 169.254.169.254\r\n\r\n');
  await untilAnswered();
  await source.ip('link', 'set', view.channel.device, 'down');
  const { connections } = await move(t);
  endMoved(connections);
  const late = new Promise((resolve) => setTimeout(resolve, 5000, 'nothing came').unref());
  const told = await Promise.race([ended, late]);
  socket.destroy();
  assert.equal(systemCodeOf(told), 'ECONNRESET');
});

test('messages are refused while a guest leaves, and accepted again when it stays', async () => {
  const token = await newToken();
  const waiting = source.control('GET', `${PATH}/queue?wait=60`);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await leave();
  assert.equal((await waiting).status, 204, 'who waits on the host asks again');
  const refused = await source.control('POST', `${PATH}/queue`, 'lost?');
  assert.deepEqual(
    [refused.status, refused.body.toString()],
    [429, 'the guest is moving to another node\n'],
  );
  await assert.rejects(ask('/ganeti/latest/read', token), { code: 'ECONNRESET' });
  assert.equal((await source.control('DELETE', `${PATH}/leave`)).status, 204);
  assert.equal((await source.control('POST', `${PATH}/queue`, 'here')).status, 204);
  assert.equal((await ask('/ganeti/latest/read', token)).body.toString(), 'here');
  await source.disconnect(view.channel.device);
});

test('a handover of another installation gets 409', async () => {
  const handover = { ...(await leave()), instanceId: 'another' };
  const { status } = await source.control('PUT', `${PATH}/arrive`, JSON.stringify(handover));
  assert.equal(status, 409);
  await source.disconnect(view.channel.device);
});

test('a new guest is served after a leave, and a view of the same guest is not', async () => {
  await leave();
  await assert.rejects(newToken(), { code: 'ECONNRESET' });
  assert.equal((await source.control('PUT', `${PATH}?guest=up`, JSON.stringify(view))).status, 204);
  await assert.rejects(newToken(), { code: 'ECONNRESET' }, 'the same guest goes nowhere by a view');
  assert.equal((await source.put(view)).status, 204);
  assert.equal((await ask('/ganeti/latest/read', await newToken())).status, 204);
  await source.disconnect(view.channel.device);
});
