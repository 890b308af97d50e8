import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { opcode, type OpcodeOf } from '#shared/contract/opcode.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { setBootContentHandler } from '../../../noded/operations/boot-content.ts';
import { createClusterRepository } from '../../../noded/records/cluster-repository.ts';
import { ManualClock } from '../support/manual-clock.ts';

const bootEnvOf = (Name: string, Path: string): object => ({
  ...{ Name, Loaders: {}, OS: { Name: 'debian-12', SupportedArchitectures: { amd64: {} } } },
  Templates: [{ Name: 'seed', Path, Contents: 'x' }],
});

test("a BootEnv whose Path is no machine's is refused with all that came with it", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-boot-content-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(() => store.close());
  const clusters = createClusterRepository(store, new ManualClock());
  await clusters.ensure();
  const handler = setBootContentHandler({ clusters });
  const prepared = (...bootEnvs: readonly object[]): ReturnType<typeof handler.prepare> => {
    const parsed = opcode.parse({ opcode: 'BOOTENV_SET', bootEnvs });
    return handler.prepare(parsed as OpcodeOf<'BOOTENV_SET'>, AbortSignal.timeout(10_000));
  };
  const good = bootEnvOf('good', '{{.Machine.Path}}/seed');
  await prepared(good);
  for (const path of ['/etc/passwd', '{{.Machine.Path}}/../../x', 'other/seed']) {
    await assert.rejects(prepared(good, bootEnvOf('bad', path)), (error: Error) => {
      assert.equal((error as { code?: unknown }).code, 'BOOTENV_INVALID');
      assert.match(error.message, /BootEnv bad: the Path of the template 'seed'/);
      return true;
    });
  }
});
