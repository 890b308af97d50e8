import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { z } from 'zod';
import { isAppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  createRecordProblems,
  listRecords,
  parseRecord,
  sortOut,
} from '#shared/store/readable-records.ts';
import { createSealedStore, makeClusterKey, ringOf } from '#shared/store/sealed-store.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { type Stretches, threadStretches } from '../../lab/thread-time.ts';

const directory = mkdtempSync(join(tmpdir(), 'gnt-records-'));
after(() => rmSync(directory, { recursive: true }));
const thing = z.object({ name: z.string(), password: z.string() });
const good = { name: 'good', password: 'xyzzy' };

test('a record of another shape, of no JSON or of another key is set aside by name; the others are read', async () => {
  const path = join(directory, 'store.sqlite');
  const ring = ringOf(makeClusterKey());
  const foreignRing = ringOf(makeClusterKey());
  const plain = createSqliteStore({ path });
  const sealed = createSealedStore(plain, () => ring);
  for (const [id, value] of Object.entries({ a: good, b: { name: 'bad', password: 7 }, e: good }))
    await sealed.commit([{ collection: 'things', id, expected: 'absent', value }]);
  const foreign = createSealedStore(plain, () => foreignRing);
  await foreign.commit([{ collection: 'things', id: 'c', expected: 'absent', value: good }]);
  const database = new DatabaseSync(path);
  database.exec(
    `INSERT INTO records (collection, id, revision, value) VALUES ('things', 'd', 1, '{"cut":')`,
  );
  database.close();

  const errors: string[] = [];
  const problems = createRecordProblems({
    ...silentLogger,
    error: (event, fields) => void errors.push(`${event} ${JSON.stringify(fields)}`),
  });
  const read = await listRecords(sealed, 'things', thing, problems);
  assert.deepEqual(read, [good, good]);
  assert.deepEqual(
    problems.list().map(({ collection, id }) => `${collection}/${id}`),
    ['things/b', 'things/c', 'things/d'],
  );
  await listRecords(sealed, 'things', thing, problems);
  assert.equal(errors.length, 3, 'each is logged once');
  assert.doesNotMatch(errors.join(), /xyzzy|:7/);

  const bad = await sealed.get('things', 'b');
  assert.throws(
    () => parseRecord(thing, 'things', bad ?? assert.fail()),
    (error) => isAppError(error, 'RECORD_UNREADABLE') && error.message.includes('things/b'),
  );
  await assert.rejects(sealed.get('things', 'd'), (error) =>
    isAppError(error, 'RECORD_UNREADABLE'),
  );

  await sealed.commit([{ collection: 'things', id: 'b', expected: 'any', value: good }]);
  await listRecords(sealed, 'things', thing, problems);
  assert.deepEqual(
    problems.list().map(({ id }) => id),
    ['c', 'd'],
  );
  await sealed.close();
});

test('everybody else has turns while many records are checked', async () => {
  const value = { things: Array<typeof good>(10_000).fill(good) };
  // Enough that one collection of garbage is a small part.
  const records = Array.from({ length: 160 }, (_, n) => ({ id: `${n}`, revision: 1, value }));
  const check = async (): Promise<void> => {
    const { readable } = await sortOut(z.object({ things: thing.array() }), 'things', records);
    assert.equal(readable.length, records.length);
  };
  // Once unmeasured, to compile the code.
  await check();
  const isFine = ({ allMs, longestMs }: Stretches): boolean => longestMs * 3 < allMs;
  const stretches = await threadStretches(check, isFine);
  assert.ok(isFine(stretches), JSON.stringify(stretches));
});
