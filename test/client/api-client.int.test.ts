import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiFailure, createApiClient, type Schemas } from '../../client/api-client.ts';
import { type ChangeEvent, followChanges } from '../../client/change-stream.ts';
import { readLines } from '../../client/lines.ts';
import { createSocketFetch } from '../../client/socket-fetch.ts';
import { createApiLab } from '../noded/support/api-lab.ts';

const baseUrl = 'http://node';

test('a program reads instances, submits a job and follows its events by the socket of the node', async (t) => {
  const { path, start } = await createApiLab(t);
  const { name } = await start(true);
  const api = createApiClient({ baseUrl, fetch: createSocketFetch(path) });
  const { data: instance } = await api.GET('/v1/instances/{name}', { params: { path: { name } } });
  assert.equal(instance?.name, name);
  const { data: job } = await api.POST('/v1/jobs', { body: { opcode: 'INSTANCE_SHUTDOWN', name } });
  assert.ok(job !== undefined && 'id' in job);
  const { response } = await api.GET('/v1/jobs/{id}/events', {
    params: { path: { id: String(job.id) } },
    parseAs: 'stream',
  });
  assert.ok(response.body);
  const events = await Array.fromAsync(readLines<Schemas['JobEvent']>(response.body));
  const last = events.at(-1);
  assert.equal(last?.type === 'end' ? last.job.status : last?.type, 'success');
});

test('a refusal is an ApiFailure with the code and the hint of the node', async (t) => {
  const { path } = await createApiLab(t);
  const api = createApiClient({ baseUrl, fetch: createSocketFetch(path) });
  const asked = api.GET('/v1/instances/{name}', { params: { path: { name: 'missing' } } });
  await assert.rejects(asked, (error: unknown) => {
    assert.ok(error instanceof ApiFailure);
    assert.deepEqual([error.status, error.code], [404, 'INSTANCE_NOT_FOUND']);
    return true;
  });
});

test('a node that does not answer is an ApiFailure without a status', async () => {
  const api = createApiClient({ baseUrl, fetch: createSocketFetch('/nonexistent/noded.sock') });
  await assert.rejects(api.GET('/v1/node'), { code: 'UNREACHABLE', status: 0 });
});

test('a program follows the changes of the cluster', async (t) => {
  const { path, start } = await createApiLab(t);
  const { name } = await start(true);
  const send = createSocketFetch(path);
  const api = createApiClient({ baseUrl, fetch: send });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const ended = Promise.withResolvers<ChangeEvent>();
  void followChanges({
    open: (headers, signal) => send(new Request(`${baseUrl}/v1/events`, { headers, signal })),
    onEvent: (change) => {
      if (change.event === 'hello')
        void api.POST('/v1/jobs', { body: { opcode: 'INSTANCE_SHUTDOWN', name } });
      const isEnded =
        change.event === 'jobs' && change.data.changed.some(({ status }) => status === 'success');
      if (isEnded) ended.resolve(change);
    },
    signal: stop.signal,
  });
  assert.equal((await ended.promise).event, 'jobs');
});

// Only the compiler runs this: the types of requests and answers follow the API.
function checkTypes(instance: Schemas['InstanceInfo']): readonly Schemas['Opcode'][] {
  const priority: number = instance.autostart.priority;
  return [
    // Fields with a default may be absent.
    { opcode: 'INSTANCE_CREATE', name: `web${priority}`, osImage: '/a.raw', nics: [{}] },
    // @ts-expect-error A request needs a name.
    { opcode: 'INSTANCE_CREATE' },
    // @ts-expect-error No such operation.
    { opcode: 'NO_SUCH', name: 'web1' },
  ];
}
void checkTypes;
