import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import { test } from 'node:test';
import { activeDisk, apiError } from '#shared/contract/api.ts';
import { jobEvent } from '#shared/contract/job.ts';
import { startApiServer } from '../../../../noded/api/http/api-server.ts';
import { MAX_BODY_VALUES } from '../../../../noded/api/http/read-body.ts';
import { planNewInstance } from '../../../../noded/instances/record/plan-record.ts';
import { ask, createApiLab, node, upgrade } from '../../support/api-lab.ts';
import { createOpcode } from '../../support/opcodes.ts';

const shutdown = JSON.stringify({ opcode: 'INSTANCE_SHUTDOWN', name: 'web1' });

test('only root can open the socket, and it goes with the server', async (t) => {
  const { path, close } = await createApiLab(t);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  await close();
  await assert.rejects(stat(path), { code: 'ENOENT' });
});

test('a second daemon on the same socket is refused, and the first goes on', async (t) => {
  const { path, served } = await createApiLab(t);
  await assert.rejects(startApiServer(path, served), { code: 'CONFLICT' });
  assert.equal((await ask(path, 'GET', '/metrics')).text, 'gnt_up 1\n');
});

test('a socket that a killed daemon left is taken over', async (t) => {
  const { path, served, close } = await createApiLab(t);
  await close();
  const dead = createServer();
  await new Promise<void>((resolve) => dead.listen(`${path}.old`, resolve));
  const { rename } = await import('node:fs/promises');
  await rename(`${path}.old`, path);
  await new Promise((resolve) => dead.close(resolve));
  const server = await startApiServer(path, served);
  assert.equal((await ask(path, 'GET', '/metrics')).status, 200);
  await server.close();
});

test('a submitted job can be watched to its end and read afterwards', async (t) => {
  const { path } = await createApiLab(t);
  const submitted = await ask(path, 'POST', '/v1/jobs', shutdown);
  assert.equal(submitted.status, 202);
  const { id } = JSON.parse(submitted.text) as { id: number };
  const events = await ask(path, 'GET', `/v1/jobs/${id}/events`);
  assert.equal(events.headers['content-type'], 'application/x-ndjson');
  const last = jobEvent.parse(JSON.parse(events.text.trim().split('\n').at(-1) ?? ''));
  assert.equal(last.type, 'end');
  const job = JSON.parse((await ask(path, 'GET', `/v1/jobs/${id}`)).text) as { result: unknown };
  assert.deepEqual(job.result, { fine: true });
  const list = JSON.parse((await ask(path, 'GET', '/v1/jobs')).text) as { log: unknown[] }[];
  assert.deepEqual(
    list.map(({ log }) => log),
    [[]],
    'a list shows no logs',
  );
});

test('values that would take a parser long are counted before one of them is made', async (t) => {
  const { path } = await createApiLab(t);
  const submit = async (count: number): Promise<string> => {
    const { status, text } = await ask(path, 'POST', '/v1/jobs', `[${'{},'.repeat(count - 2)}{}]`);
    return `${status} ${apiError.parse(JSON.parse(text)).code}`;
  };
  assert.equal(await submit(MAX_BODY_VALUES / 2), '400 VALIDATION');
  assert.equal(await submit(MAX_BODY_VALUES), '413 REQUEST_TOO_LARGE');
});

test('a dry run answers without a job', async (t) => {
  const { path } = await createApiLab(t);
  const answer = await ask(path, 'POST', '/v1/jobs?dry-run=1', shutdown);
  assert.deepEqual([answer.status, answer.text], [200, '{"ok":true}']);
  assert.equal((await ask(path, 'GET', '/v1/jobs')).text, '[]');
});

test('a dry run that is spelt wrong runs nothing', async (t) => {
  const { path } = await createApiLab(t);
  const answer = await ask(path, 'POST', '/v1/jobs?dry-run=true', shutdown);
  assert.equal(answer.status, 400);
  assert.match(answer.text, /dry-run: expected 1 or job/);
  assert.equal((await ask(path, 'GET', '/v1/jobs')).text, '[]');
});

test('an answer tells what its type names, and one that does not fit it is not sent', async (t) => {
  const named = { ...node, secret: 'SECRET-VALUE' };
  const { path } = await createApiLab(t, { describeNode: () => Promise.resolve(named) });
  const told = await ask(path, 'GET', '/v1/node');
  assert.deepEqual([told.status, JSON.parse(told.text)], [200, node]);
  const odd = { ...node, pid: 'SECRET-VALUE' } as unknown as typeof node;
  const other = await createApiLab(t, { describeNode: () => Promise.resolve(odd) });
  const { status, text } = await ask(other.path, 'GET', '/v1/node');
  assert.deepEqual([status, text.includes('SECRET-VALUE')], [500, false]);
});

test('a refused request names the field, never a value of it', async (t) => {
  const { path } = await createApiLab(t);
  const secret = 'SECRET-VALUE';
  const bodies = [
    { opcode: 'INSTANCE_CREATE', name: secret },
    { opcode: secret, name: 'web1' },
    { opcode: 'INSTANCE_CREATE', name: 'web1', osParametersSecret: secret },
    { opcode: 'INSTANCE_CREATE', name: 'web1', osParametersSecret: { a: [secret] } },
    { opcode: 'INSTANCE_CREATE', name: 'web1', personalizationPassword: { x: secret } },
    { opcode: 'INSTANCE_CREATE', name: 'web1', userData: `${secret} is no base64` },
    { opcode: 'INSTANCE_CREATE', name: 'web1', osImageChecksum: secret },
    { opcode: 'INSTANCE_CREATE', name: 'web1', dialects: [secret] },
    secret,
    [secret],
  ];
  for (const body of bodies) {
    const { status, text } = await ask(path, 'POST', '/v1/jobs', JSON.stringify(body));
    assert.equal(status, 400, text);
    assert.equal(apiError.parse(JSON.parse(text)).code, 'VALIDATION');
    assert.ok(!text.includes(secret), text);
  }
  const broken = await ask(path, 'POST', '/v1/jobs', `{"secret":"${secret}`);
  assert.deepEqual([broken.status, broken.text.includes(secret)], [400, false]);
});

test('a field that does not exist is named', async (t) => {
  const { path } = await createApiLab(t);
  const { text } = await ask(path, 'POST', '/v1/jobs', shutdown.replace('{', '{"colour":1,'));
  assert.match(text, /colour/);
});

test('what there is not answers 404 with a code and a message', async (t) => {
  const { path } = await createApiLab(t);
  for (const [method, target, code] of [
    ['GET', '/', 'NOT_FOUND'],
    ['GET', '/v1/nothing', 'NOT_FOUND'],
    ['GET', '/v1/instances/web9', 'INSTANCE_NOT_FOUND'],
    ['GET', '/v1/instances/%00', 'INSTANCE_NOT_FOUND'],
    ['GET', '/v1/jobs/99', 'JOB_NOT_FOUND'],
    ['GET', '/v1/jobs/0', 'JOB_NOT_FOUND'],
    ['GET', '/v1/jobs/1e3', 'JOB_NOT_FOUND'],
    ['DELETE', '/v1/jobs/99', 'JOB_NOT_FOUND'],
    ['GET', '/v1/os/debian', 'OS_NOT_FOUND'],
  ] as const) {
    const { status, text } = await ask(path, method, target);
    assert.equal(status, 404, `${target}: ${text}`);
    assert.equal(apiError.parse(JSON.parse(text)).code, code, target);
  }
});

test('a bug is told as one, without what it was', async (t) => {
  const { path } = await createApiLab(t);
  const { status, text } = await ask(path, 'GET', '/v1/node');
  assert.equal(status, 500);
  assert.equal(apiError.parse(JSON.parse(text)).code, 'INTERNAL');
  assert.ok(!text.includes('internal detail'));
});

test('a request that is too long is answered, not cut off', async (t) => {
  const { path } = await createApiLab(t);
  const { status, text } = await ask(path, 'POST', '/v1/jobs', Buffer.alloc(17 * 1024 * 1024, 32));
  assert.equal(status, 413);
  assert.match(text, /larger than/);
});

test("bytes go into the channel's queue and come out of it", async (t) => {
  const { path, metad, start } = await createApiLab(t);
  const { name } = await start(true);
  const queue = `/v1/instances/${name}/queue`;
  assert.equal((await ask(path, 'POST', queue, 'hello')).status, 204);
  assert.deepEqual(metad.written, [Buffer.from('hello')]);
  assert.equal((await ask(path, 'GET', queue)).status, 204);
  metad.waiting.push(Buffer.from([0, 255]));
  const answer = await ask(path, 'GET', `${queue}?wait=1&offset=0`);
  assert.deepEqual([answer.status, answer.headers['x-gnt-offset']], [200, '7']);
  for (const query of ['wait=61', 'wait=-1', 'offset=x', 'offset=1.5'])
    assert.equal((await ask(path, 'GET', `${queue}?${query}`)).status, 400, query);
  assert.equal((await ask(path, 'POST', queue, Buffer.alloc(64 * 1024 + 1))).status, 413);
});

test('metadata is shown by its path, the top without one', async (t) => {
  const { path, start } = await createApiLab(t);
  const { name, uuid } = await start(true);
  const under = `/v1/instances/${name}/metadata`;
  assert.equal((await ask(path, 'GET', `${under}/ganeti/latest/`)).text, `${uuid} ganeti/latest/`);
  assert.equal((await ask(path, 'GET', under)).text, `${uuid} `);
});

test('the disks of an instance are told with their files, a missing one by name', async (t) => {
  const { path, start, dependencies } = await createApiLab(t);
  const { name, uuid } = await start(false);
  const missing = await ask(path, 'GET', `/v1/instances/${name}/disks`);
  assert.equal(apiError.parse(JSON.parse(missing.text)).code, 'DISK_MISSING');
  const record = await dependencies.instances.findByName(name);
  await dependencies.disks.createEmpty(record);
  const { status, text } = await ask(path, 'GET', `/v1/instances/${name}/disks`);
  assert.equal(status, 200);
  const [disk] = activeDisk.array().parse(JSON.parse(text));
  assert.deepEqual([disk?.index, disk?.sizeBytes], [0, record.disks[0]?.sizeBytes]);
  assert.equal((await stat(disk?.path ?? '')).size, disk?.sizeBytes);
  await dependencies.instances.update(uuid, (old) => ({ ...old, installState: 'installing' }));
  const busy = await ask(path, 'GET', `/v1/instances/${name}/disks`);
  assert.deepEqual([busy.status, busy.text.includes('gnt-job watch')], [409, true]);
});

test("tokens are replaced in metad, and not without an instance's channel", async (t) => {
  const { path, metad, start } = await createApiLab(t);
  const { name, uuid } = await start(true);
  assert.equal((await ask(path, 'DELETE', `/v1/instances/${name}/tokens`)).status, 204);
  assert.deepEqual(metad.tokensReplaced, [uuid]);
  const other = await start(false);
  assert.equal((await ask(path, 'DELETE', `/v1/instances/${other.name}/tokens`)).status, 409);
  assert.deepEqual(metad.tokensReplaced, [uuid]);
});

test('without the channel, or without a machine, the channel is refused with what to do', async (t) => {
  const { path, start, dependencies } = await createApiLab(t);
  const { name } = await start(false);
  const idle = await dependencies.instances.create(
    planNewInstance(createOpcode({ name: 'idle' }), {
      nodeName: 'node1',
      newUuid: randomUUID,
      newMac: () => 'aa:00:00:00:00:01',
    }),
  );
  for (const instance of [name, idle.name]) {
    for (const target of ['queue', 'metadata']) {
      const { status, text } = await ask(path, 'GET', `/v1/instances/${instance}/${target}`);
      assert.equal(status, 409);
      assert.ok(apiError.parse(JSON.parse(text)).hint);
    }
    const { head, socket } = await upgrade(path, `/v1/instances/${instance}/connect/22`);
    socket.destroy();
    assert.match(head, /^HTTP\/1\.1 409 /);
  }
});

test('a connection to a port of the guest is a raw stream in both directions', async (t) => {
  const { path, metad, start } = await createApiLab(t);
  const { name } = await start(true);
  // A PassThrough acts as an echo server in the guest.
  metad.guestPort = () => Promise.resolve(new PassThrough());
  const { head, socket } = await upgrade(path, `/v1/instances/${name}/connect/22`);
  assert.match(head, /^HTTP\/1\.1 101 /);
  const echoed = new Promise<string>((resolve) =>
    socket.once('data', (bytes: Buffer) => resolve(bytes.toString())),
  );
  socket.write('SSH-2.0-test');
  assert.equal(await echoed, 'SSH-2.0-test');
  socket.destroy();
});

test('a stream is refused for what it cannot be opened for', async (t) => {
  const { path, start } = await createApiLab(t);
  const { name } = await start(true);
  for (const [target, status] of [
    [`/v1/instances/${name}/connect/22`, 502],
    [`/v1/instances/${name}/connect/0`, 400],
    [`/v1/instances/${name}/connect/65536`, 400],
    [`/v1/instances/${name}/connect/x`, 404],
    [`/v1/instances/web9/connect/22`, 404],
    [`/v1/instances/%E0%A4/connect/22`, 404],
    ['//', 404],
    ['/v1/jobs', 404],
  ] as const) {
    const { head, socket } = await upgrade(path, target);
    socket.destroy();
    assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} `), `${target}: ${head}`);
    assert.ok(apiError.safeParse(JSON.parse(head.slice(head.indexOf('\r\n\r\n')))).success);
  }
});

test('a client that gave up while its stream was being opened leaves none open', async (t) => {
  const { path, metad, start } = await createApiLab(t);
  const { name } = await start(true);
  const asked = Promise.withResolvers<undefined>();
  const opened = Promise.withResolvers<Duplex>();
  metad.guestPort = () => {
    asked.resolve(undefined);
    return opened.promise;
  };
  const client = connect(path);
  client.write(
    `GET /v1/instances/${name}/connect/22 HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n`,
  );
  await asked.promise;
  const gone = new Promise((resolve) => client.once('close', resolve));
  client.destroy();
  await gone;
  // The server notices the disconnection one turn later.
  await ask(path, 'GET', '/metrics');
  const guest = new PassThrough();
  const closed = new Promise((resolve) => guest.once('close', resolve));
  opened.resolve(guest);
  await closed;
});

test('closing the server ends open streams and watchers', async (t) => {
  const { path, metad, start, close } = await createApiLab(t);
  const { name } = await start(true);
  const guest = new PassThrough();
  metad.guestPort = () => Promise.resolve(guest);
  const { socket } = await upgrade(path, `/v1/instances/${name}/connect/22`);
  const gone = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  await close();
  await gone;
  assert.ok(guest.destroyed);
});

test('no text with a NUL character, half a surrogate pair or bytes that are not UTF-8 gets to a job', async (t) => {
  const { path } = await createApiLab(t);
  const modify = (osParametersSecret: unknown): string =>
    JSON.stringify({ opcode: 'INSTANCE_SET_PARAMS', name: 'web1', osParametersSecret });
  const latin1 = Buffer.from(modify({ key: 'k3y\xe9' }), 'latin1');
  for (const body of [
    modify({ key: 'k3y\0tail' }),
    modify({ key: 'k3y\ud800' }),
    modify(JSON.parse('{"__proto__": "k3y"}')),
    latin1,
  ]) {
    const refused = await ask(path, 'POST', '/v1/jobs', body);
    assert.equal(refused.status, 400, refused.text);
    assert.equal(apiError.parse(JSON.parse(refused.text)).code, 'VALIDATION');
    assert.doesNotMatch(refused.text, /k3y/);
  }
  assert.equal((await ask(path, 'GET', '/v1/jobs')).text, '[]');
  for (const given of ['/v1/instances/a%00b', '/v1/jobs/%00', '/v1/nodes/%00'])
    assert.ok([400, 404].includes((await ask(path, 'GET', given)).status), given);
});
