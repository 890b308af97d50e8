import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { type Clock, systemClock } from '../clock/clock.ts';
import { AppError, messageOf } from '../errors/app-error.ts';
import {
  checkCollection,
  checkKey,
  decodeListed,
  decodeValue,
  type EncodedWrite,
  encodeWrites,
} from './encode.ts';
import { StoreConflict } from './store-conflict.ts';
import { migrateSqlite } from './sqlite-schema.ts';
import type { ListedRecord, OnChanges, Store, StoredRecord } from './store.ts';

export interface SqliteStoreOptions {
  readonly path: string;
  /** Dates the backup that precedes a migration. */
  readonly clock?: Clock;
}

/**
 * Only one process writes; a backup tool may hold the file for a moment. A busy wait blocks the
 * loop, so it is short.
 */
const BUSY_TIMEOUT_MS = 250;
/** Records of a slice: a few milliseconds of reading. */
const SLICE = 32;

/**
 * Opens the embedded engine: one file (0600, in a directory that it makes 0700 when missing), WAL,
 * every commit on disk before it is answered.
 * @throws AppError STORE_VERSION when the file was written by a newer program
 */
export function createSqliteStore(options: SqliteStoreOptions): Store {
  const database = openDatabase(options.path);
  try {
    configure(database, options.path);
    migrateSqlite(database, options.path, options.clock ?? systemClock);
    keepRoom(database);
    return createStore(database, options.path);
  } catch (error) {
    database.close();
    throw error;
  }
}

function openDatabase(path: string): DatabaseSync {
  // The mode of an existing directory is its owner's business: the appliance and others may share
  // it.
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // SQLite gives the WAL and its index the mode of the main file.
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  chmodSync(path, 0o600);
  return database;
}

function configure(database: DatabaseSync, path: string): void {
  try {
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON',
    );
  } catch (error) {
    throw new AppError('FILE_UNREADABLE', `cannot use the store ${path}: ${messageOf(error)}`, {
      cause: error,
      hint: 'Restore it from a backup, or move it away to start an empty cluster.',
    });
  }
}

/** In pages of 4 KiB, SQLite's default. */
const ROOM_PAGES = 512;
/** Interval of checks, in commits: most take a page or two. */
const COMMITS_FOR_ROOM = 64;

/**
 * Reserves space in the file and its log, so that instances can be removed and jobs can end on a
 * full disk. A log that was once that large is written from its beginning after each checkpoint,
 * and pages of deleted records are reused. A disk that is already too full is accepted.
 */
function keepRoom(database: DatabaseSync): void {
  try {
    database.exec(`PRAGMA wal_autocheckpoint = ${ROOM_PAGES / 2}`);
    const free = database.prepare('PRAGMA freelist_count').get()?.['freelist_count'];
    if (Number(free) >= ROOM_PAGES / 2) return;
    database.exec('CREATE TABLE IF NOT EXISTS room (bytes BLOB)');
    database.prepare('INSERT INTO room VALUES (zeroblob(?))').run(ROOM_PAGES * 4096);
    database.exec('DROP TABLE room; PRAGMA wal_checkpoint(PASSIVE)');
  } catch (error) {
    // A host error must not block commits that still have space.
    if (explain(error, '') === error) throw error;
  }
}

interface Row {
  readonly id: string;
  readonly revision: number;
  readonly value: string;
}

function keyOf({ id, revision }: Row): Pick<StoredRecord, 'id' | 'revision'> {
  return { id, revision };
}

function decodeRow(collection: string, row: Row): ListedRecord {
  return decodeListed(keyOf(row), () => decodeValue(collection, row.id, row.value));
}

function createStore(database: DatabaseSync, path: string): Store {
  const selectOne = database.prepare(
    'SELECT id, revision, value FROM records WHERE collection = ? AND id = ?',
  );
  const selectAll = database.prepare(
    'SELECT id, revision, value FROM records WHERE collection = ? ORDER BY id',
  );
  const selectSlice = database.prepare(
    'SELECT id, revision, value FROM records WHERE collection = ? AND id > ? ORDER BY id LIMIT ?',
  );
  const selectIds = database.prepare('SELECT id FROM records WHERE collection = ?');
  // No other process writes.
  const watchers = new Map<string, Set<OnChanges>>();
  const tellWatchers = (writes: readonly EncodedWrite[]): void => {
    for (const collection of new Set(writes.map((write) => write.collection))) {
      const ids = writes.flatMap((write) => (write.collection === collection ? write.id : []));
      for (const onChanges of watchers.get(collection) ?? []) onChanges(ids);
    }
  };
  const apply = createWriter(database, selectOne);
  let isOpen = true;
  let commits = 0;
  return {
    async get(collection, id) {
      checkKey(collection, id);
      // Columns of a STRICT table have the types of Row.
      const row = selectOne.get(collection, id) as Row | undefined;
      return row && { ...keyOf(row), value: decodeValue(collection, row.id, row.value) };
    },
    async getSome(collection, ids) {
      for (const id of ids) checkKey(collection, id);
      return ids.flatMap((id) => {
        // As in get().
        const row = selectOne.get(collection, id) as Row | undefined;
        return row === undefined ? [] : decodeRow(collection, row);
      });
    },
    async list(collection) {
      checkCollection(collection);
      // As in get().
      const rows = selectAll.all(collection) as unknown as Row[];
      return rows.map((row) => decodeRow(collection, row));
    },
    async *scan(collection) {
      checkCollection(collection);
      let after = '';
      for (;;) {
        // As in get().
        const rows = selectSlice.all(collection, after, SLICE) as unknown as Row[];
        const last = rows.at(-1);
        if (last === undefined) return;
        yield rows.map((row) => decodeRow(collection, row));
        after = last.id;
        // SQLite never waits, so other work would.
        await turn();
      }
    },
    async ids(collection) {
      checkCollection(collection);
      // As in get().
      return (selectIds.all(collection) as unknown as Pick<Row, 'id'>[]).map(({ id }) => id);
    },
    async commit(writes) {
      const encoded = encodeWrites(writes);
      try {
        database.exec('BEGIN IMMEDIATE');
        const revisions = encoded.map(apply);
        database.exec('COMMIT');
        commits += 1;
        if (commits % COMMITS_FOR_ROOM === 0) keepRoom(database);
        tellWatchers(encoded);
        return revisions;
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw explain(error, path);
      }
    },
    watch: (collection, onChanges) => {
      checkCollection(collection);
      const watching = watchers.get(collection) ?? new Set();
      watchers.set(collection, watching);
      watching.add(onChanges);
      queueMicrotask(() => {
        if (watching.has(onChanges)) onChanges(null);
      });
      return {
        // The commit itself reports changes.
        caughtUp: () => Promise.resolve(),
        end: () => void watching.delete(onChanges),
      };
    },
    async close() {
      if (isOpen) database.close();
      isOpen = false;
    },
  };
}

/** Primary result codes (sqlite.org/rescode.html). */
const BUSY = 5;
const IO_ERROR = 10;
const FULL = 13;

/** Converts errors of the host; nothing of the commit was written. */
function explain(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || !('errcode' in error)) return error;
  // Higher bytes refine the first.
  const code = Number(error.errcode) & 0xff;
  if (code === FULL) {
    return new AppError('DISK_FULL', `no space left for the store ${path} to grow`, {
      hint: 'Free space on its file system: remove instances with gnt-instance remove, or other files.',
      cause: error,
    });
  }
  if (code !== BUSY && code !== IO_ERROR) return error;
  return new AppError('STORE_UNAVAILABLE', `cannot write to the store ${path}: ${error.message}`, {
    hint: 'Look at the kernel log, and check which other processes have the file open.',
    cause: error,
  });
}

function createWriter(
  database: DatabaseSync,
  selectOne: StatementSync,
): (write: EncodedWrite) => number {
  const upsert = database.prepare(
    `INSERT INTO records (collection, id, revision, value) VALUES (?, ?, ?, ?)
     ON CONFLICT (collection, id) DO UPDATE SET revision = excluded.revision, value = excluded.value`,
  );
  const remove = database.prepare('DELETE FROM records WHERE collection = ? AND id = ?');
  return ({ collection, id, expected, json }) => {
    // Columns of a STRICT table have the types of Row.
    const row = selectOne.get(collection, id) as Row | undefined;
    const holds = expected === 'any' || expected === (row?.revision ?? 'absent');
    if (!holds) throw new StoreConflict(collection, id);
    if (json === null) {
      remove.run(collection, id);
      return 0;
    }
    const revision = (row?.revision ?? 0) + 1;
    upsert.run(collection, id, revision, json);
    return revision;
  };
}
