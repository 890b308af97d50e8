import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import { migrateSqlite } from '#shared/store/sqlite-schema.ts';
import { createSqliteStore } from '#shared/store/sqlite-store.ts';
import { testStoreContract } from './store-contract.ts';

let directory = '';
let count = 0;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-store-'));
});
after(() => rm(directory, { recursive: true }));
const newPath = (): string => join(directory, `s${++count}`, 'store.sqlite');

testStoreContract({
  name: 'sqlite',
  open: async () => {
    const path = newPath();
    return {
      store: createSqliteStore({ path }),
      reopen: async () => createSqliteStore({ path }),
    };
  },
});

test('sqlite: only the owner can read the store, its WAL and its directory', async () => {
  const path = newPath();
  const store = createSqliteStore({ path });
  await store.commit([{ collection: 'a', id: 'x', expected: 'absent', value: 'private' }]);
  const modeOf = async (name: string): Promise<number> => (await stat(name)).mode & 0o777;
  assert.equal(await modeOf(join(path, '..')), 0o700);
  const files = await readdir(join(path, '..'));
  assert.deepEqual(files.sort(), ['store.sqlite', 'store.sqlite-shm', 'store.sqlite-wal']);
  for (const file of files) assert.equal(await modeOf(join(path, '..', file)), 0o600, file);
  await store.close();
});

test('sqlite: what was committed is there after the writer was killed', async () => {
  const path = newPath();
  const program = `
    const { createSqliteStore } = await import(${JSON.stringify(import.meta.resolve('#shared/store/sqlite-store.ts'))});
    const store = createSqliteStore({ path: ${JSON.stringify(path)} });
    for (let n = 1; ; n += 1) {
      await store.commit([{ collection: 'a', id: 'n', expected: 'any', value: n }, { collection: 'a', id: 'twin', expected: 'any', value: n }]);
      process.stdout.write(n + '\\n');
      await new Promise((resolve) => setImmediate(resolve));
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let last = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    last = Number(line);
    if (last === 20) child.kill('SIGKILL');
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  const store = createSqliteStore({ path });
  const record = await store.get('a', 'n');
  assert.ok(record && (record.value as number) >= last && last >= 20, 'an answered commit is lost');
  assert.equal((await store.get('a', 'twin'))?.value, record.value);
  await store.close();
});

test('sqlite: a file of a newer schema is refused by name and left as it is', async () => {
  const path = newPath();
  const store = createSqliteStore({ path });
  await store.close();
  const database = new DatabaseSync(path);
  database.exec('PRAGMA user_version = 7');
  database.close();
  assert.throws(
    () => createSqliteStore({ path }),
    (error) =>
      isAppError(error, 'STORE_VERSION') &&
      error.message.includes(path) &&
      error.message.includes('7'),
  );
  const check = new DatabaseSync(path);
  assert.equal(check.prepare('PRAGMA user_version').get()?.['user_version'], 7);
  check.close();
});

test("sqlite: another program's database is not taken over", async () => {
  const path = join(directory, 'foreign.sqlite');
  const database = new DatabaseSync(path);
  database.exec('CREATE TABLE theirs (x)');
  database.close();
  assert.throws(
    () => createSqliteStore({ path }),
    (error) => isAppError(error, 'STORE_VERSION'),
  );
});

test('sqlite: a file that is no database is refused by name', async () => {
  const path = join(directory, 'text.sqlite');
  await writeFile(path, 'not a database, but long enough to be looked at as one'.repeat(20));
  assert.throws(
    () => createSqliteStore({ path }),
    (error) => isAppError(error, 'FILE_UNREADABLE') && error.message.includes(path),
  );
});

test('sqlite: an older schema is migrated after a backup that holds the old one', async () => {
  const path = join(directory, 'older.sqlite');
  const database = new DatabaseSync(path);
  const first = `CREATE TABLE records (collection TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL)`;
  const second = `ALTER TABLE records ADD COLUMN note TEXT NOT NULL DEFAULT 'migrated'`;
  const clock = { now: () => Date.UTC(2026, 10, 21), monotonicMs: () => 0 };
  migrateSqlite(database, path, clock, [first]);
  database.exec(`INSERT INTO records VALUES ('a', 'x', 1, '"kept"')`);
  migrateSqlite(database, path, clock, [first, second]);
  assert.equal(database.prepare('SELECT value, note FROM records').get()?.['note'], 'migrated');
  assert.equal(database.prepare('PRAGMA user_version').get()?.['user_version'], 2);
  database.close();

  const backup = `${path}.v1-2026-11-21T00-00-00-000Z.bak`;
  assert.equal((await stat(backup)).mode & 0o777, 0o600);
  const old = new DatabaseSync(backup, { readOnly: true });
  assert.deepEqual(
    { ...old.prepare('SELECT * FROM records').get() },
    {
      collection: 'a',
      id: 'x',
      revision: 1,
      value: '"kept"',
    },
  );
  old.close();
});
