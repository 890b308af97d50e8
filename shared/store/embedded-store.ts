import { renameSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../clock/clock.ts';
import { AppError, messageOf } from '../errors/app-error.ts';
import { syncPath } from '../files/durable.ts';
import type { RootPaths } from '../paths/root-paths.ts';

/** Facts of an embedded store that decide whether a common store may replace it. */
export interface EmbeddedStore {
  /** UUID of its cluster; null before the first start of gnt-noded was complete. */
  readonly cluster: string | null;
  readonly instances: readonly string[];
  /** Other records that an operator made: collection and number of records. */
  readonly others: ReadonlyMap<string, number>;
}

const OTHERS = ['os', 'profiles', 'networks', 'bootenvs'];

/**
 * Reads the store without changing it, also while gnt-noded runs.
 * @throws AppError FILE_UNREADABLE
 */
export function readEmbeddedStore(path: string): EmbeddedStore {
  try {
    using database = new DatabaseSync(path, { readOnly: true });
    const tables = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'records'").all();
    if (tables.length === 0) return { cluster: null, instances: [], others: new Map() };
    return readRecords(database);
  } catch (error) {
    throw new AppError('FILE_UNREADABLE', `${path} is not a readable store: ${messageOf(error)}`, {
      hint: `Restore it from a backup, or move it away if it has no instances: mv ${path} ${path}.bad`,
      cause: error,
    });
  }
}

function readRecords(database: DatabaseSync): EmbeddedStore {
  const member = (name: string): string =>
    `CASE WHEN json_valid(value) THEN json_extract(value, '$.${name}') END`;
  const cluster = database
    .prepare(`SELECT ${member('uuid')} AS uuid FROM records WHERE collection = 'cluster'`)
    .get()?.['uuid'];
  const names = database
    .prepare(`SELECT coalesce(${member('name')}, id) AS name FROM records WHERE collection = ?`)
    .all('instances')
    .map(({ name }) => String(name));
  const count = database.prepare('SELECT count(*) AS count FROM records WHERE collection = ?');
  const counts = OTHERS.map((name) => [name, Number(count.get(name)?.['count'])] as const);
  return {
    cluster: typeof cluster === 'string' ? cluster : null,
    instances: names.toSorted(),
    others: new Map(counts.filter(([, records]) => records > 0)),
  };
}

/**
 * Renames the embedded store, with its log written back into the file, so that gnt-noded does not
 * open it. Call it while the root is claimed.
 * @returns the new path
 */
export async function setAsideEmbeddedStore(
  { storeFile }: Pick<RootPaths, 'storeFile'>,
  clock: Pick<Clock, 'now'>,
): Promise<string> {
  const stamp = new Date(clock.now()).toISOString().replaceAll(/[:.]/g, '-');
  const target = `${storeFile}.replaced-${stamp}.bak`;
  // Records that a killed daemon committed are in the log until the file is opened again.
  const database = new DatabaseSync(storeFile);
  database.exec('PRAGMA journal_mode = DELETE');
  database.close();
  renameSync(storeFile, target);
  await syncPath(dirname(storeFile));
  return target;
}
