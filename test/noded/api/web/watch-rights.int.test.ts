import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { planNewInstance } from '../../../../noded/instances/record/plan-record.ts';
import { createOpcode } from '../../support/opcodes.ts';
import { createWebLab } from './web-lab.ts';

test('a console ends when its user has lost the instance', async (t) => {
  const lab = await createWebLab(t, ['bob write tag:team-b']);
  const path = `${lab.path}.console`;
  lab.hypervisor.consoleSocket = path;
  const { name, uuid } = await lab.start(false);
  const { instances } = lab.dependencies;
  await instances.update(uuid, (record) => ({ ...record, tags: ['team-b'] }));
  const server = createServer();
  const guest = new Promise<Socket>((resolve) => server.once('connection', resolve));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.after(() => server.close());
  const { cookie } = await lab.login('bob');
  const { origin } = lab;
  const client = new WebSocket(`${origin.replace('http', 'ws')}/v1/instances/${name}/console`, {
    ...{ headers: { cookie, origin }, rejectUnauthorized: false },
  });
  t.after(() => client.terminate());
  await once(client, 'open');
  await instances.update(uuid, (record) => ({ ...record, tags: ['team-a'] }));
  const [status] = (await once(client, 'close', { signal: AbortSignal.timeout(10_000) })) as [
    number,
  ];
  assert.equal(status, 4404);
  (await guest).destroy();
});

test('a stream whose session ends during its admission is refused', async (t) => {
  const lab = await createWebLab(t, ['alice write']);
  const { instances } = lab.dependencies;
  const node = { nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' };
  const record = await instances.create(planNewInstance(createOpcode({ name: 'web1' }), node));
  const { ask } = await lab.login('alice');
  t.mock.method(
    instances,
    'findByName',
    async () => {
      assert.equal((await ask('POST /logout')).status, 204);
      return record;
    },
    { times: 1 },
  );
  assert.equal((await ask('GET /v1/instances/web1/audit?follow=1')).status, 401);
});
