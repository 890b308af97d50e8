import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';
import { instancesEvent } from '#shared/contract/cluster-event.ts';
import { planNewInstance } from '../../../../noded/instances/record/plan-record.ts';
import { createOpcode } from '../../support/opcodes.ts';
import { openEvents } from '../../support/read-events.ts';
import { createWebLab } from './web-lab.ts';

function placeOf(origin: string) {
  const { port, hostname: host, protocol } = new URL(origin);
  return { port, host, protocol, rejectUnauthorized: false };
}

test('events show a bound user the own instances, and one that leaves as removed', async (t) => {
  const { dependencies, login, origin } = await createWebLab(t, ['bob read tag:team-b']);
  const { headers } = await login('bob');
  const { next } = await openEvents(t, { ...placeOf(origin), headers });
  const seen: string[] = [];
  const nextSeen = async () => {
    const event = await next();
    seen.push(JSON.stringify(event));
    return event;
  };
  await nextSeen();
  const add = async (name: string, tags: readonly string[]): Promise<string> => {
    const opcode = createOpcode({ name, tags: [...tags] });
    const node = { nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' };
    return (await dependencies.instances.create(planNewInstance(opcode, node))).uuid;
  };
  const foreign = await add('foreign', ['team-a']);
  const own = await add('own', ['team-b']);
  const added = instancesEvent.parse((await nextSeen()).data);
  assert.deepEqual(
    added.changed.map(({ uuid }) => uuid),
    [own],
  );
  await dependencies.instances.update(own, (record) => ({ ...record, tags: ['team-a'] }));
  const left = instancesEvent.parse((await nextSeen()).data);
  assert.deepEqual(left, { changed: [], removed: [own] });
  await dependencies.instances.remove(foreign);
  await add('other', ['team-b']);
  await nextSeen();
  assert.ok(!seen.join().includes('foreign') && !seen.join().includes(foreign));
  assert.ok(!seen.join().includes('"nodes"'));
});

test('a logout ends the stream of events', async (t) => {
  const { login, origin } = await createWebLab(t, ['alice read']);
  const { headers, ask } = await login('alice');
  const { next, answer } = await openEvents(t, { ...placeOf(origin), headers });
  await next();
  // The connection breaks within the answer.
  const broken = once(answer, 'close').catch((error: unknown) => error);
  assert.equal((await ask('POST /logout')).status, 204);
  assert.equal((await broken) instanceof Error, true);
});
