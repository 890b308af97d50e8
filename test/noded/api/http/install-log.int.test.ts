import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { installLogPath } from '../../../../noded/host/install-log.ts';
import { auditLogPath } from '../../../../noded/instances/run-lists/audit-log.ts';
import { beginRun } from '../../../../noded/instances/run-lists/plan-lifecycle.ts';
import { ask, createApiLab } from '../../support/api-lab.ts';

test('a log that another node has is told of, and one that is here is shown', async (t) => {
  const { path, start, dependencies } = await createApiLab(t);
  const { instances, logDir } = dependencies;
  const { name, uuid } = await start(false);
  const record = (logFile: string | null) =>
    instances.update(uuid, (current) => ({
      ...current,
      installState: 'installed',
      install: {
        ...{ jobId: 7, state: 'success', startedAtMs: 1, endedAtMs: 2, stage: null },
        ...{ error: null, stages: [], logFile },
      },
    }));
  const log = () => ask(path, 'GET', `/v1/instances/${name}/log`);
  // A log that no installation began exists on no node.
  await record(null);
  assert.deepEqual([(await log()).status, (await log()).text], [200, '']);
  await record('/of/node2/install.log');
  const refused = await log();
  assert.equal(refused.status, 404);
  assert.match(refused.text, /"NOT_FOUND".*no log.*\/of\/node2\/install\.log.*gnt-job info 7/);
  await mkdir(logDir, { recursive: true });
  await writeFile(installLogPath(logDir, uuid), 'a line\n');
  assert.deepEqual([(await log()).status, (await log()).text], [200, 'a line\n']);
});

test('an audit log that another node has is told of, unless what comes is followed', async (t) => {
  const { path, start, dependencies } = await createApiLab(t);
  const { instances, logDir } = dependencies;
  const { name, uuid } = await start(false);
  const audit = (query = '') => ask(path, 'GET', `/v1/instances/${name}/audit${query}`);
  assert.deepEqual([(await audit()).status, (await audit()).text], [200, '']);
  const lifecycle = beginRun(randomUUID(), 1, { nowMs: 1, bootTimeoutS: null });
  await instances.update(uuid, (current) => ({ ...current, lifecycle }));
  const followed = audit('?follow=1');
  const refused = await audit();
  assert.equal(refused.status, 404);
  assert.match(
    refused.text,
    /"NOT_FOUND".*node1 has no audit log.*audit-.*gnt-job list.*INSTANCE_MOVE/,
  );
  await mkdir(logDir, { recursive: true });
  await writeFile(auditLogPath(logDir, uuid), 'a line\n');
  assert.deepEqual([(await audit()).status, (await audit()).text], [200, 'a line\n']);
  await instances.remove(uuid);
  assert.deepEqual([(await followed).status, (await followed).text], [200, 'a line\n']);
});
