import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createRecordProblems } from '#shared/store/readable-records.ts';
import type { ListedRecord, OnChanges } from '#shared/store/store.ts';
import {
  startInstanceIndex,
  type InstanceIndex,
  type InstanceIndexDependencies,
} from '../../../noded/records/instance-index.ts';
import { instanceRecord } from '../support/records.ts';

// Simulated here: a real store does this too rarely to wait for.

const UUID = '00000000-0000-4000-8000-000000000001';
const found: ListedRecord = {
  ...{ id: UUID, revision: 1 },
  value: instanceRecord({ name: 'a.example.com' }, { uuid: UUID }),
};

function start(
  t: TestContext,
  reading: Pick<InstanceIndexDependencies['store'], 'scan' | 'getSome'>,
  logger: InstanceIndexDependencies['logger'] = silentLogger,
  onReadWhole?: () => void,
): { readonly index: InstanceIndex; readonly notice: OnChanges } {
  let notice: OnChanges = () => undefined;
  const index = startInstanceIndex({
    store: {
      ...reading,
      watch: (_collection, onChanges) => {
        notice = onChanges;
        return { caughtUp: () => Promise.resolve(), end: () => undefined };
      },
    },
    ...{ problems: createRecordProblems(silentLogger), logger },
    ...(onReadWhole && { onReadWhole }),
  });
  t.after(() => index[Symbol.asyncDispose]());
  return { index, notice: (ids) => notice(ids) };
}

test('a change that is told while a reading ends is read, at whichever moment that is', async (t) => {
  for (let moment = 0; moment < 30; moment += 1) {
    const { index, notice } = start(t, {
      scan: async function* () {
        await turn();
        const later = (turns: number): void =>
          turns === 0 ? notice([UUID]) : queueMicrotask(() => later(turns - 1));
        later(moment);
        yield [];
      },
      getSome: () => Promise.resolve([found]),
    });
    notice(null);
    for (let turns = 0; turns < 5; turns += 1) await turn();
    assert.equal((await index.list()).length, 1, `after ${moment} microtasks`);
  }
});

test('a list fails when what it waits for cannot be read, and the log says it once', async (t) => {
  const warned: string[] = [];
  const logger = { ...silentLogger, warn: (event: string) => void warned.push(event) };
  let isAway = true;
  const { index, notice } = start(
    t,
    {
      scan: async function* () {
        if (isAway) throw new AppError('STORE_UNAVAILABLE', 'away');
        yield [found];
      },
      getSome: () => Promise.resolve([found]),
    },
    logger,
  );
  notice(null);
  await assert.rejects(index.list(), { code: 'STORE_UNAVAILABLE' });
  await assert.rejects(index.list(), { code: 'STORE_UNAVAILABLE' });
  assert.deepEqual(warned, ['instances.not-read']);
  isAway = false;
  assert.equal((await index.list()).length, 1);
});

test('that all was read is told at its end, however long it takes, and not of single changes', async (t) => {
  const told: string[] = [];
  const ended = Promise.withResolvers<void>();
  const reading = {
    scan: async function* () {
      yield [found];
      told.push('half');
      await ended.promise;
      yield [];
    },
    getSome: () => Promise.resolve([found]),
  };
  const { index, notice } = start(t, reading, silentLogger, () => void told.push('whole'));
  notice(null);
  for (let turns = 0; turns < 5; turns += 1) await turn();
  assert.deepEqual(told, ['half']);
  ended.resolve();
  assert.equal((await index.list()).length, 1);
  assert.deepEqual(told, ['half', 'whole']);
  notice([UUID]);
  assert.equal((await index.list()).length, 1);
  assert.deepEqual(told, ['half', 'whole']);
});
