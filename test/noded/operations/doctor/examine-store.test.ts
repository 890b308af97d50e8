import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DoctorReport } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Check, NodeParts } from '../../../../noded/operations/doctor/check.ts';
import {
  checkRecords,
  checkRenewal,
  checkRisks,
  checkStore,
} from '../../../../noded/operations/doctor/examine-store.ts';

type Finding = DoctorReport['findings'][number];
const partsOf = (parts: object): NodeParts => parts as NodeParts;
/** Returns the only finding of a check. */
const findingOf = async (found: ReturnType<Check>): Promise<Finding> => {
  const finding = await found;
  return finding instanceof Array ? assert.fail() : finding;
};

test('a store that does not answer is a failure, with the hint of its error', async () => {
  const of = (load: () => Promise<unknown>) =>
    findingOf(checkStore(partsOf({ records: { clusters: { load }, storeDescription: 'redis' } })));
  assert.equal((await of(() => Promise.resolve({}))).level, 'ok');
  const away = new AppError('STORE_UNAVAILABLE', 'no answer', { hint: 'start it' });
  const failed = await of(() => Promise.reject(away));
  assert.deepEqual([failed.level, failed.message, failed.hint], ['error', 'no answer', 'start it']);
});

test('the worst risk of a store gives its level and hint, and all are named', async () => {
  const of = (risks?: () => Promise<unknown>) =>
    findingOf(checkRisks(partsOf({ records: { store: { risks } } })));
  assert.equal((await of()).level, 'ok');
  assert.equal((await of(() => Promise.resolve([]))).level, 'ok');
  const both = await of(() =>
    Promise.resolve([
      { level: 'warning', message: 'small', hint: 'a' },
      { level: 'error', message: 'large', hint: 'b' },
    ]),
  );
  assert.deepEqual([both.level, both.hint], ['error', 'b']);
  assert.match(both.message, /large; small/);
  const unknown = await of(() => Promise.reject(new Error('NOPERM')));
  assert.equal(unknown.level, 'warning');
  assert.match(unknown.message, /NOPERM/);
});

test('records that were set aside are named, at most five of them', async () => {
  const of = (count: number) => {
    const list = () =>
      Array.from({ length: count }, (_, at) => ({
        ...{ collection: 'instances', id: `i${at}`, reason: 'bad' },
      }));
    return findingOf(checkRecords(partsOf({ records: { problems: { list } } })));
  };
  assert.equal((await of(0)).level, 'ok');
  const many = await of(7);
  assert.equal(many.level, 'warning');
  assert.match(many.message, /^7 .*instances\/i0 \(bad\).*instances\/i4/);
  assert.doesNotMatch(many.message, /i5/);
});

test('a renewal of the cluster key that has not ended is a warning', async () => {
  const of = (describe: () => Promise<string | null>) =>
    findingOf(checkRenewal(partsOf({ clusterKey: { describe } })));
  assert.equal((await of(() => Promise.resolve(null))).level, 'ok');
  assert.equal((await of(() => Promise.resolve('waits for node2'))).level, 'warning');
  assert.equal((await of(() => Promise.reject(new Error('away')))).message, 'away');
});
