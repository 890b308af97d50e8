import { mkdtempSync, rmSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createRedisStore } from '#shared/store/redis-store.ts';
import type { Store } from '#shared/store/store.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
  type NewInstance,
} from '../../../noded/records/instance-repository.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createOpcode } from '../support/opcodes.ts';
import { startRedis } from '../support/redis-server.ts';

export function repositoryOf(store: Store): InstanceRepository {
  return createInstanceRepository(store, new ManualClock(), createRecordProblems(silentLogger));
}

export function openStore(t: TestContext): Store {
  const dir = mkdtempSync(join(tmpdir(), 'gnt-instances-'));
  const store = createSqliteStore({ path: join(dir, 'store.sqlite') });
  t.after(async () => {
    await store.close();
    rmSync(dir, { recursive: true });
  });
  return store;
}

export const ENGINES: Readonly<Record<string, (t: TestContext) => Store | Promise<Store>>> = {
  SQLite: openStore,
  Redis: async (t) => {
    const server = await startRedis();
    t.after(() => server.stop());
    const url = `unix:${server.socket}`;
    const store = await createRedisStore({ server: { url }, logger: silentLogger });
    t.after(() => store.close());
    return store;
  },
};

export function plan(
  name: string,
  input: Parameters<typeof createOpcode>[0] = {},
  uuid = randomUUID,
): NewInstance {
  return planNewInstance(createOpcode({ name, ...input }), {
    nodeName: 'node1',
    newUuid: uuid,
    newMac: () => 'aa:00:00:12:34:56',
  });
}

export const nic = (mac: string) => [{ mac, mode: 'user' as const }];
