import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import {
  type LifecycleEvent,
  runLists,
  type RunLists,
  type ViewLifecycle,
} from '#shared/contract/lifecycle.ts';
import { advanceProgress } from '#shared/contract/lifecycle-progress.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { createGuestEvents } from '../../../noded/instances/reports/guest-events.ts';
import { planNewInstance } from '../../../noded/instances/record/plan-record.ts';
import { auditLogPath, createAuditLog } from '../../../noded/instances/run-lists/audit-log.ts';
import type {
  Lifecycles,
  LifecyclesDependencies,
} from '../../../noded/instances/run-lists/lifecycles-contract.ts';
import {
  createInstanceRepository,
  type InstanceRepository,
} from '../../../noded/records/instance-repository.ts';
import { createLabLifecycles } from './lab-lifecycles.ts';
import { ManualClock } from './manual-clock.ts';
import { createOpcode } from './opcodes.ts';

const script = (text: string): string => Buffer.from(`#!/bin/sh\n${text}\n`).toString('base64');
export const LISTS = runLists.parse({
  boot: [
    { name: 'base', content: script('true') },
    { name: 'more', content: script('true') },
  ],
  operational: [{ name: 'backup', content: script('true') }],
  decommission: [{ name: 'leave', content: script('true') }],
  inputs: { WHO: { from: 'text', text: 'me' }, PASSWORD: { from: 'cred', name: 'dbpw' } },
});
export const PARAMETERS = new Set(['dbpw', 'region']);
export const BOOT = randomUUID();

export const BOOTED = [
  { type: 'booting' },
  ...['boot/01-base', 'boot/02-more'].flatMap((entry) => [
    { type: 'started', entry },
    { type: 'finished', entry, status: 0 },
  ]),
  { type: 'operational' },
];

/** A node with one instance; a new daemon is made over the same store and the same guest. */
export async function createLifecycleLab(t: TestContext, lists: RunLists | null = LISTS) {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-lifecycle-'));
  // The last lines of its log may still be on their way.
  t.after(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  const clock = new ManualClock();
  const store = createSqliteStore({ path: join(dir, 'store.sqlite'), clock });
  t.after(() => store.close());
  let writes = 0;
  /** Of metad's events. */
  let sequence = 1000;
  const stored = createInstanceRepository(store, clock, createRecordProblems(silentLogger));
  const instances: InstanceRepository = {
    ...stored,
    update: (uuid, change) => {
      writes += 1;
      return stored.update(uuid, change);
    },
  };
  const created = await instances.create(
    planNewInstance(createOpcode({ communication: true, ...(lists && { runLists: lists }) }), {
      ...{ nodeName: 'node1', newUuid: randomUUID, newMac: () => 'aa:00:00:00:00:01' },
    }),
  );
  const { uuid } = created;
  let ended = Promise.withResolvers<void>();
  const kept = { machine: { uuid, startedAtMs: 5 } };
  let isRunning = false;
  let kills = 0;
  let published = 0;
  const views: ViewLifecycle[] = [];
  const instance = async (): Promise<InstanceRecord> => {
    const found = await instances.findByUuid(uuid);
    assert.ok(found);
    return found;
  };
  const newDaemon = (given: Partial<LifecyclesDependencies> = {}, hears = true) => {
    const guestEvents = createGuestEvents();
    const lifecycles: Lifecycles = createLabLifecycles({
      ...{ instances, guestEvents, clock, audit: createAuditLog(dir), agentSilenceMs: 1500 },
      machines: {
        get: () => (isRunning ? kept : undefined),
        whenGone: () => ended.promise,
        kill: () => {
          kills += 1;
          return Promise.resolve();
        },
        publish: async () => {
          const view = await lifecycles.planView(await instance(), PARAMETERS);
          published += 1;
          if (view !== undefined) views.push(view);
        },
      },
      ...given,
    });
    if (hears) lifecycles.hear();
    return { lifecycles, guestEvents };
  };
  const first = newDaemon();
  const start = async (goesOn = false): Promise<void> => {
    ended = Promise.withResolvers<void>();
    await first.lifecycles.begin(await instance(), goesOn);
    isRunning = true;
    first.lifecycles.follow(kept);
  };
  /** The guest says something, by way of metad. */
  const say = async (
    daemon: ReturnType<typeof newDaemon>,
    ...words: readonly Record<string, unknown>[]
  ): Promise<void> => {
    for (const word of words) {
      const view = await daemon.lifecycles.planView(await instance(), PARAMETERS);
      assert.ok(view);
      const { progress, status } = view;
      const number = word['type'] === 'booting' ? 1 : progress.number + 1;
      const event = { run: status.run, boot: BOOT, number, ...word } as LifecycleEvent;
      const next = advanceProgress(
        progress,
        event,
        {
          run: status.run,
          boot: view.lists.boot.map(({ name }) => name),
          decommission: view.lists.decommission.map(({ name }) => name),
          command: status.next?.entry ?? null,
        },
        true,
      );
      assert.ok(!('refused' in next), JSON.stringify(next));
      daemon.guestEvents.dispatch({
        ...{ sequence: ++sequence, instance: uuid },
        event: { type: 'lifecycle', event, progress: next },
      });
    }
  };
  const until = async (isSo: (record: InstanceRecord) => boolean): Promise<InstanceRecord> => {
    for (const deadline = AbortSignal.timeout(30_000); ;) {
      const record = await instance();
      if (isSo(record)) return record;
      deadline.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return {
    ...{ dir, uuid, clock, first, newDaemon, start, say, until, instance, views },
    nextSequence: () => ++sequence,
    lastSequence: () => sequence,
    writes: () => writes,
    kills: () => kills,
    published: () => published,
    endMachine: () => {
      isRunning = false;
      ended.resolve();
    },
    /** When it is as it is expected. */
    audit: async (isSo: (text: string) => boolean = () => true): Promise<string> => {
      for (const deadline = AbortSignal.timeout(30_000); ;) {
        const all = await readFile(auditLogPath(dir, uuid), 'utf8').catch(() => '');
        const text = all.replaceAll(/^\S+Z /gm, '');
        if (isSo(text)) return text;
        deadline.throwIfAborted();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
}
