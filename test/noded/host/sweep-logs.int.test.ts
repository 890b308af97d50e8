import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { sweepLogs } from '../../../noded/host/install-log.ts';

test('install and script logs of instances on other nodes are removed, and other logs stay', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-logs-'));
  t.after(() => rm(dir, { recursive: true }));
  const [here, there, nobodys] = [randomUUID(), randomUUID(), randomUUID()];
  const kinds = ['install', 'script', 'audit'];
  for (const uuid of [here, there, nobodys])
    for (const kind of kinds) await writeFile(join(dir, `${kind}-${uuid}.log`), 'said');
  await writeFile(join(dir, 'metad.log'), 'said');
  const list = [
    { uuid: here, primaryNode: 'one' },
    { uuid: there, primaryNode: 'two' },
  ];
  await sweepLogs(dir, {
    ...{ index: { list: () => Promise.resolve(list) }, owns: (node) => node === 'one' },
  });
  const left = [here, nobodys].flatMap((uuid) => kinds.map((kind) => `${kind}-${uuid}.log`));
  assert.deepEqual(
    (await readdir(dir)).sort(),
    [...left, `audit-${there}.log`, 'metad.log'].sort(),
  );
});
