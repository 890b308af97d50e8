import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import {
  type InstanceInfo,
  instanceInfo,
  instanceSummary,
  type InstanceSummary,
} from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Reply } from '../../../../noded/api/http/handlers.ts';
import { instanceRoutes } from '../../../../noded/api/http/instance-routes.ts';
import { planNewInstance } from '../../../../noded/instances/record/plan-record.ts';
import { ask, createApiLab } from '../../support/api-lab.ts';
import { createOpcode } from '../../support/opcodes.ts';

async function deadline(path: string): Promise<never> {
  await setTimeout(20_000, undefined, { ref: false });
  assert.fail(`${path} was not ended`);
}

const PATH = '/v1/instance-summaries';
const WHOLE = '/v1/instances';
const LISTS = ['GET /v1/instances', 'GET /v1/own-instances'] as const;
const MANY = 10_000;

/** Returns the request of a list's handler without a query. */
function askedForAll() {
  const signal = AbortSignal.timeout(60_000);
  return { params: {}, query: {}, body: undefined, signal };
}

function streamOf(outcome: unknown): Readable {
  const body = outcome instanceof Reply ? outcome.body : outcome;
  assert.ok(body instanceof Readable);
  return body;
}

// Lists are not checked against a schema when they are sent, so this test checks their fields.
const { running } = instanceSummary.shape;
const exactly = instanceSummary.extend({ running: running.unwrap().strict().nullable() }).strict();

test('a row has what its schema names and nothing else, of an instance that runs or not', async (t) => {
  const { path, start, dependencies } = await createApiLab(t);
  const { name, uuid } = await start(true);
  const planned = planNewInstance(
    createOpcode({ name: 'down.example.com', tags: ['a', 'b'], nics: [] }),
    { nodeName: 'node1', newUuid: () => crypto.randomUUID(), newMac: () => 'aa:00:00:00:00:02' },
  );
  await dependencies.instances.create(planned);
  const { text } = await ask(path, 'GET', PATH);
  const rows = text
    .trimEnd()
    .split('\n')
    .map((line) => exactly.parse(JSON.parse(line)));
  assert.deepEqual(rows.map((row) => row.name).sort(), ['down.example.com', name].sort());
  assert.deepEqual(rows.find((row) => row.name === 'down.example.com')?.tags, ['a', 'b']);
  const { pid, tap } = rows.find((row) => row.uuid === uuid)?.running ?? assert.fail();
  const kept = dependencies.keeper.get(uuid);
  assert.deepEqual({ pid, tap }, { pid: kept?.machine.pid, tap: kept?.device });
});

test('a list tells no more of an instance than it is asked for', async (t) => {
  const { path, start } = await createApiLab(t);
  const { name } = await start(true);
  const { text } = await ask(path, 'GET', `${PATH}?fields=status,name`);
  assert.deepEqual(JSON.parse(text), { status: 'ERROR_up', name });
  const refused = await ask(path, 'GET', `${PATH}?fields=name,userData`);
  assert.equal(refused.status, 400);
  assert.match(refused.text, /fields/);
});

test('of a long list no row is made before its turn, and everybody else has turns in between', async (t) => {
  const { dependencies } = await createApiLab(t);
  let made = 0;
  function* rows(): Generator<InstanceSummary> {
    for (; made < MANY; made += 1) yield { name: `web${made}` } as InstanceSummary;
  }
  const overview = { ...dependencies.overview, summaries: () => Promise.resolve(rows()) };
  const routes = instanceRoutes({ ...dependencies, overview });
  const body = streamOf(await routes[`GET ${PATH}`](askedForAll()));
  let mostAtOnce = 0;
  let seen = 0;
  let isOver = false;
  const look = (): void => {
    mostAtOnce = Math.max(mostAtOnce, made - seen);
    seen = made;
    if (!isOver) setImmediate(look);
  };
  look();
  let lines = 0;
  for await (const text of body as AsyncIterable<string>) lines += text.split('\n').length - 1;
  isOver = true;
  assert.equal(lines, MANY);
  assert.ok(mostAtOnce <= 512, `${mostAtOnce} rows in one turn`);
});

test('of all that is known the first go out before the last are known', async (t) => {
  const { path, start, dependencies } = await createApiLab(t);
  await start(true);
  const [info] = z.array(instanceInfo).parse(JSON.parse((await ask(path, 'GET', WHOLE)).text));
  assert.ok(info);
  const later = Promise.withResolvers<void>();
  const slices = async function* (): AsyncGenerator<readonly InstanceInfo[]> {
    yield [info];
    await later.promise;
    yield [];
    yield [info, info];
  };
  const overview = { ...dependencies.overview, instanceSlices: slices };
  const routes = instanceRoutes({ ...dependencies, overview });
  const body = streamOf(await routes[`GET ${WHOLE}`](askedForAll()))[Symbol.asyncIterator]();
  const first = String((await body.next()).value);
  assert.equal(first, `[${JSON.stringify(info)}`);
  later.resolve();
  let text = first;
  for (let next = await body.next(); next.done !== true; next = await body.next())
    text += String(next.value);
  assert.equal(z.array(instanceInfo).parse(JSON.parse(text)).length, 3);
});

test('what keeps the first from coming is a refusal', async (t) => {
  const { dependencies } = await createApiLab(t);
  const refusal = new AppError('STORE_UNAVAILABLE', 'it is away');
  const slices = (): AsyncIterable<readonly InstanceInfo[]> => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(refusal) }),
  });
  const overview = { ...dependencies.overview, instanceSlices: slices };
  const routes = instanceRoutes({ ...dependencies, overview });
  for (const list of LISTS) await assert.rejects(async () => routes[list](askedForAll()), refusal);
});

for (const isRead of [false, true])
  test(`a list that nobody ${isRead ? 'reads to its end' : 'begins to read'} leaves nothing open`, async (t) => {
    const { dependencies } = await createApiLab(t);
    for (const list of LISTS)
      for (const reason of [undefined, new Error('gone')]) {
        const ended = Promise.withResolvers<void>();
        const slices = async function* (): AsyncGenerator<readonly InstanceInfo[]> {
          try {
            for (;;) yield [{ name: 'x'.repeat(100_000) } as InstanceInfo];
          } finally {
            ended.resolve();
          }
        };
        const overview = { ...dependencies.overview, instanceSlices: slices };
        const routes = instanceRoutes({ ...dependencies, overview });
        const body = streamOf(await routes[list](askedForAll()));
        body.on('error', () => undefined);
        if (isRead) await once(body, 'readable');
        body.destroy(reason);
        await Promise.race([ended.promise, deadline(list)]);
      }
  });

test('lists of profiles and BootEnvs name their instances, and read no records of them', async (t) => {
  const { path, dependencies } = await createApiLab(t);
  await dependencies.clusters.updateProfile('web', (profile) => profile);
  const planned = planNewInstance(createOpcode({ name: 'web1', profiles: ['web'], nics: [] }), {
    ...{ nodeName: 'node1', newUuid: () => crypto.randomUUID(), newMac: () => 'aa:00:00:00:00:02' },
  });
  await dependencies.instances.create(planned);
  const list = t.mock.method(dependencies.instances, 'list');
  const { text } = await ask(path, 'GET', '/v1/profiles');
  assert.match(text, /"instances":\["web1"\]/);
  assert.equal((await ask(path, 'GET', '/v1/bootenvs')).status, 200);
  assert.equal(list.mock.callCount(), 0);
});
