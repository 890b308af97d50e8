import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { instanceRoutes } from '../../../../noded/api/rapi/rapi-instance-routes.ts';
import type { RapiRequest } from '../../../../noded/api/rapi/rapi-route.ts';
import { createVisible } from '../../../../noded/api/rapi/visible.ts';
import { sampleInstance } from '../../../cluster-cli/support/samples.ts';
import { createApiLab } from '../../support/api-lab.ts';

type Slices = () => AsyncIterable<readonly InstanceInfo[]>;

/** Requests the bulk list as a user who may see instances named `web*`. */
async function askBulk(t: Parameters<typeof createApiLab>[0], instanceSlices: Slices) {
  const { dependencies } = await createApiLab(t);
  const overview = { ...dependencies.overview, instanceSlices };
  const visible = createVisible({ ...dependencies, overview });
  const routes = instanceRoutes({ visible, submit: () => assert.fail() });
  const list = routes.find(({ path, method }) => path === '/2/instances' && method === 'GET');
  const request: RapiRequest = {
    ...{ params: {}, query: new URLSearchParams('bulk=1'), body: undefined },
    user: { name: 'reader', role: 'read', scope: { tags: [], names: ['web*'] } },
    signal: AbortSignal.timeout(60_000),
  };
  return list?.handle(request);
}

test('of a bulk list the first go out before the last are known, and none of others', async (t) => {
  const later = Promise.withResolvers<void>();
  const slices: Slices = async function* () {
    yield [sampleInstance({ name: 'db1' })];
    yield [sampleInstance({ name: 'web1' }), sampleInstance({ name: 'db2' })];
    await later.promise;
    yield [sampleInstance({ name: 'web2' })];
  };
  const body = await askBulk(t, slices);
  assert.ok(body instanceof Readable);
  const texts = body[Symbol.asyncIterator]();
  let text = String((await texts.next()).value);
  assert.match(text, /^\[\{.*"name":"web1".*\}$/);
  later.resolve();
  for (let next = await texts.next(); next.done !== true; next = await texts.next())
    text += String(next.value);
  const names = (JSON.parse(text) as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(names, ['web1', 'web2']);
});

test('what keeps the first of a bulk list from coming is a refusal', async (t) => {
  const refusal = new AppError('STORE_UNAVAILABLE', 'it is away');
  const slices: Slices = () => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(refusal) }),
  });
  await assert.rejects(askBulk(t, slices), refusal);
});
