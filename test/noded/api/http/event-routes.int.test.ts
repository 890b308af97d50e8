import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  helloEvent,
  instancesEvent,
  jobsEvent,
  objectsEvent,
} from '#shared/contract/cluster-event.ts';
import { ask, createApiLab } from '../../support/api-lab.ts';

interface ReadEvent {
  readonly id: string;
  readonly event: string;
  readonly data: unknown;
}

/** Opens the stream and returns a function that reads the next event. */
async function openEvents(t: TestContext, socketPath: string, lastId?: string) {
  const asked = request({
    ...{ socketPath, path: '/v1/events' },
    ...(lastId !== undefined && { headers: { 'last-event-id': lastId } }),
  });
  t.after(() => asked.destroy());
  asked.on('error', () => undefined);
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8');
  const events = parseEvents(answer.setEncoding('utf8'));
  const next = async (event?: string): Promise<ReadEvent> => {
    for (;;) {
      const { value } = await events.next();
      assert.ok(value, 'the stream ended');
      if (event === undefined || value.event === event) return value;
    }
  };
  return { next, close: () => asked.destroy() };
}

async function* parseEvents(answer: AsyncIterable<string>): AsyncGenerator<ReadEvent, undefined> {
  let rest = '';
  for await (const text of answer) {
    const blocks = `${rest}${text}`.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const match = /^id: (.+)\nevent: (.+)\ndata: (.+)$/.exec(block);
      if (match === null) continue;
      const [, id = '', event = '', data = ''] = match;
      yield { id, event, data: JSON.parse(data) };
    }
  }
}

test('a new, a started and a removed instance each reach the reader', async (t) => {
  const { path, start, dependencies, keeper } = await createApiLab(t);
  const { next } = await openEvents(t, path);
  const hello = helloEvent.parse((await next()).data);
  assert.deepEqual(hello, { node: 'node1', version: '0.0.0', isResumed: false });
  const { name, uuid } = await start(false);
  let summary;
  do summary = instancesEvent.parse((await next('instances')).data).changed[0];
  while (summary?.running == null);
  assert.deepEqual([summary.name, summary.uuid], [name, uuid]);
  await keeper.kill(uuid);
  await dependencies.instances.remove(uuid);
  let removed: readonly string[] = [];
  while (removed.length === 0)
    removed = instancesEvent.parse((await next('instances')).data).removed;
  assert.deepEqual(removed, [uuid]);
});

test('a job reaches the reader without its input', async (t) => {
  const { path } = await createApiLab(t);
  const { next } = await openEvents(t, path);
  await next();
  await ask(path, 'POST', '/v1/jobs', '{"opcode":"INSTANCE_SHUTDOWN","name":"web1"}');
  let job;
  do {
    const { data } = await next('jobs');
    job = jobsEvent.parse(data).changed[0];
    assert.doesNotMatch(JSON.stringify(data), /"(?:input|log|result)"/);
  } while (job?.status !== 'success');
  assert.equal(job.summary, 'INSTANCE_SHUTDOWN(web1)');
});

test('a changed profile names its list', async (t) => {
  const { path, dependencies } = await createApiLab(t);
  const { next } = await openEvents(t, path);
  await next();
  await dependencies.clusters.updateProfile('debian', (profile) => profile);
  assert.deepEqual(objectsEvent.parse((await next('objects')).data).changed, ['profiles']);
});

test('a reader that returns gets what it missed, once', async (t) => {
  const { path, dependencies } = await createApiLab(t);
  const first = await openEvents(t, path);
  const { id } = await first.next();
  first.close();
  await dependencies.clusters.updateProfile('debian', (profile) => profile);
  await delay(600);
  const second = await openEvents(t, path, id);
  assert.equal(helloEvent.parse((await second.next()).data).isResumed, true);
  const missed = await second.next();
  assert.equal(missed.event, 'objects');
  const third = await openEvents(t, path, missed.id);
  assert.equal(helloEvent.parse((await third.next()).data).isResumed, true);
  await dependencies.clusters.updateProfile('other', (profile) => profile);
  const fresh = await third.next();
  assert.notEqual(fresh.id, missed.id);
});

test('a reader with the id of another daemon must read the lists again', async (t) => {
  const { path } = await createApiLab(t);
  const { next } = await openEvents(t, path, '0123456789ab-7');
  assert.equal(helloEvent.parse((await next()).data).isResumed, false);
});
