import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  helloEvent,
  instancesEvent,
  jobsEvent,
  objectsEvent,
} from '#shared/contract/cluster-event.ts';
import { ask, createApiLab } from '../../support/api-lab.ts';
import { openEvents } from '../../support/read-events.ts';

test('a new, a started and a removed instance each reach the reader', async (t) => {
  const { path, start, dependencies, keeper } = await createApiLab(t);
  const { next } = await openEvents(t, { socketPath: path });
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
  const { next } = await openEvents(t, { socketPath: path });
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
  const { next } = await openEvents(t, { socketPath: path });
  await next();
  await dependencies.clusters.updateProfile('debian', (profile) => profile);
  assert.deepEqual(objectsEvent.parse((await next('objects')).data).changed, ['profiles']);
});

test('a reader that returns gets what it missed, once', async (t) => {
  const { path, dependencies } = await createApiLab(t);
  const first = await openEvents(t, { socketPath: path });
  const { id } = await first.next();
  first.close();
  await dependencies.clusters.updateProfile('debian', (profile) => profile);
  await delay(600);
  const second = await openEvents(t, { socketPath: path }, id);
  assert.equal(helloEvent.parse((await second.next()).data).isResumed, true);
  const missed = await second.next();
  assert.equal(missed.event, 'objects');
  const third = await openEvents(t, { socketPath: path }, missed.id);
  assert.equal(helloEvent.parse((await third.next()).data).isResumed, true);
  await dependencies.clusters.updateProfile('other', (profile) => profile);
  const fresh = await third.next();
  assert.notEqual(fresh.id, missed.id);
});

test('a reader with the id of another daemon must read the lists again', async (t) => {
  const { path } = await createApiLab(t);
  const { next } = await openEvents(t, { socketPath: path }, '0123456789ab-7');
  assert.equal(helloEvent.parse((await next()).data).isResumed, false);
});
