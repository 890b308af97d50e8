import { ownValue } from '../json/own-value.ts';
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../clock/clock.ts';
import { newerStore } from './encode.ts';

/** Marks the file as ours (`PRAGMA application_id`): "GNT1". */
const APPLICATION_ID = 0x474e5431;

/** `migrations[n]` leads from version n to n + 1. Append only. */
const migrations: readonly string[] = [
  `CREATE TABLE records (
     collection TEXT NOT NULL,
     id TEXT NOT NULL,
     revision INTEGER NOT NULL CHECK (revision > 0),
     value TEXT NOT NULL,
     PRIMARY KEY (collection, id)
   ) STRICT, WITHOUT ROWID`,
  '-- Records have what the releases before do not know: snapshots, profiles, run lists and more.',
];

/**
 * Migrates an older file, after a backup beside it; does nothing when it is current.
 * @param steps `steps[n]` leads from version n to n + 1; the program's own except in tests
 */
export function migrateSqlite(
  database: DatabaseSync,
  path: string,
  clock: Clock,
  steps: readonly string[] = migrations,
): void {
  const version = pragma(database, 'user_version');
  if (version > steps.length) throw newerStore(path, version);
  checkOwner(database, path, version);
  if (version === steps.length) return;
  if (version > 0) backup(database, path, version, clock);
  database.exec('BEGIN IMMEDIATE');
  try {
    for (const step of steps.slice(version)) database.exec(step);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
    database.exec(`PRAGMA user_version = ${steps.length}`);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function checkOwner(database: DatabaseSync, path: string, version: number): void {
  const applicationId = pragma(database, 'application_id');
  const tables = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get();
  const isNew = version === 0 && applicationId === 0 && tables?.['count'] === 0;
  if (!isNew && applicationId !== APPLICATION_ID) throw newerStore(path, 'of another program');
}

/** Writes a consistent copy by VACUUM INTO, and renames it once it is on the disk. */
function backup(database: DatabaseSync, path: string, version: number, clock: Clock): void {
  const stamp = new Date(clock.now()).toISOString().replaceAll(/[:.]/g, '-');
  const target = `${path}.v${version}-${stamp}.bak`;
  const half = `${path}.bak-half`;
  rmSync(half, { force: true });
  database.prepare('VACUUM INTO ?').run(half);
  chmodSync(half, 0o600);
  syncSync(half);
  renameSync(half, target);
  syncSync(dirname(target));
}

function syncSync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function pragma(database: DatabaseSync, name: string): number {
  const value = ownValue(database.prepare(`PRAGMA ${name}`).get() ?? {}, name);
  if (typeof value !== 'number') throw new Error(`PRAGMA ${name} returned no number`);
  return value;
}
