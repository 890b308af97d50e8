import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { chmodSync } from 'node:fs';
import type { Clock } from '../clock/clock.ts';
import { AppError, messageOf } from '../errors/app-error.ts';
import type { Logger } from '../log/log.ts';

export interface MarkedKey {
  readonly collection: string;
  readonly id: string;
}
export interface MarkedRecord extends MarkedKey {
  readonly stamp: number;
}

/** A record compared with its mark. `unsure`: it changed after the reader asked; ask again. */
export type Judgement = 'current' | 'replayed' | 'unsure';

interface ReplayGuardOptions {
  readonly path: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
}

interface Mark {
  readonly stamp: number;
  readonly raisedAt: number;
}

/** More records than disappear during one request. */
const MAX_REMEMBERED_GONE = 10_000;

const SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS marks (
    collection TEXT NOT NULL,
    id TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    PRIMARY KEY (collection, id)
  ) STRICT, WITHOUT ROWID`;

/**
 * Opens the marks, in memory and in a file beside the store's key. Marks of gone records are in the
 * file only.
 * @throws AppError FILE_UNREADABLE
 */
export function openReplayGuard(options: ReplayGuardOptions): ReplayGuard {
  const { path } = options;
  try {
    const database = new DatabaseSync(path);
    chmodSync(path, 0o600);
    database.exec(SCHEMA);
    return new ReplayGuard(database, options);
  } catch (error) {
    throw new AppError('FILE_UNREADABLE', `cannot use ${path}: ${messageOf(error)}`, {
      hint: 'Create a new one, which accepts the current records, with gnt-cluster accept-records',
      cause: error,
    });
  }
}

/**
 * The newest stamp of each record that this node has seen. Stamps are sealed with the records.
 * Without the marks, an attacker with write access to a common store could put an older record
 * back.
 *
 * INVARIANTS: a mark only rises; each mark in memory is in the file, unless the log reports a
 * failed write. A power failure may lose the last marks: then those records, and no older ones, can
 * be put back.
 */
export class ReplayGuard {
  readonly #options: ReplayGuardOptions;
  readonly #database: DatabaseSync;
  readonly #upsert: StatementSync;
  readonly #selectGone: StatementSync;
  readonly #marks = new Map<string, Map<string, Mark>>();
  /** Versions at which records disappeared after a reader may have asked, by collection and id. */
  readonly #goneAt = new Map<string, number>();
  #version = 0;
  #highest: number;

  constructor(database: DatabaseSync, options: ReplayGuardOptions) {
    this.#options = options;
    this.#database = database;
    this.#upsert = database.prepare(
      `INSERT INTO marks (collection, id, stamp, gone) VALUES (?, ?, ?, ?)
       ON CONFLICT (collection, id) DO UPDATE SET stamp = max(stamp, excluded.stamp), gone = excluded.gone`,
    );
    this.#selectGone = database.prepare(
      'SELECT stamp FROM marks WHERE collection = ? AND id = ? AND gone = 1',
    );
    const top = database.prepare('SELECT max(stamp) AS top FROM marks').get()?.['top'];
    this.#highest = typeof top === 'number' ? top : 0;
    const live = database.prepare('SELECT collection, id, stamp FROM marks WHERE gone = 0').all();
    // Columns of a STRICT table have these types.
    for (const mark of live as unknown as MarkedRecord[]) this.#keep(mark);
  }

  /** A reader takes it before asking the store, for `judge`. */
  get version(): number {
    return this.#version;
  }

  /** Returns the stamp of a new write: newer than all that were seen, of any record. */
  nextStamp(): number {
    this.#highest = Math.max(this.#highest + 1, this.#options.clock.now());
    return this.#highest;
  }

  /** Makes later stamps newer than this one, if this node's clock is behind. */
  raiseStamps(newest: number): void {
    this.#highest = Math.max(this.#highest, newest);
  }

  /** @param asked the version before the store was asked */
  judge({ collection, id, stamp }: MarkedRecord, asked: number): Judgement {
    const mark = this.#marks.get(collection)?.get(id);
    if (mark !== undefined) {
      if (stamp >= mark.stamp) return 'current';
      return mark.raisedAt > asked ? 'unsure' : 'replayed';
    }
    const gone = this.#selectGone.get(collection, id)?.['stamp'];
    if (typeof gone !== 'number' || stamp > gone) return 'current';
    return (this.#goneAt.get(`${collection}/${id}`) ?? 0) > asked ? 'unsure' : 'replayed';
  }

  isNews({ collection, id, stamp }: MarkedRecord): boolean {
    const known = this.#marks.get(collection)?.get(id)?.stamp;
    return known === undefined || stamp > known;
  }

  knownIds(collection: string, asked: number): readonly string[] {
    const known: string[] = [];
    for (const [id, { raisedAt }] of this.#marks.get(collection) ?? [])
      if (raisedAt <= asked) known.push(id);
    return known;
  }

  /** Raises marks; never lowers one. */
  note(records: readonly MarkedRecord[]): void {
    const higher = records.filter((record) => this.isNews(record));
    if (higher.length === 0) return;
    this.#version += 1;
    for (const record of higher) this.#keep(record);
    this.#write(higher.map(({ collection, id, stamp }) => [collection, id, stamp, 0]));
  }

  /**
   * Marks records as gone: only a newer record of the id is current again.
   * @param asked the version before the record was missing or deleted; later marks may belong to a
   * new record
   */
  noteGone(keys: readonly MarkedKey[], asked: number): void {
    const known = keys.flatMap(({ collection, id }) => {
      const mark = this.#marks.get(collection)?.get(id);
      return mark === undefined || mark.raisedAt > asked
        ? []
        : [{ collection, id, stamp: mark.stamp }];
    });
    if (known.length === 0) return;
    this.#version += 1;
    for (const { collection, id } of known) {
      this.#marks.get(collection)?.delete(id);
      this.#goneAt.set(`${collection}/${id}`, this.#version);
    }
    for (const key of this.#goneAt.keys()) {
      if (this.#goneAt.size <= MAX_REMEMBERED_GONE) break;
      this.#goneAt.delete(key);
    }
    this.#write(known.map(({ collection, id, stamp }) => [collection, id, stamp, 1]));
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #keep({ collection, id, stamp }: MarkedRecord): void {
    const marks = this.#marks.get(collection) ?? new Map<string, Mark>();
    this.#marks.set(collection, marks);
    marks.set(id, { stamp, raisedAt: this.#version });
    this.#highest = Math.max(this.#highest, stamp);
  }

  /**
   * Writes one transaction without a wait for the disk. A full disk must not fail a commit that is
   * done.
   */
  #write(rows: readonly (readonly [string, string, number, 0 | 1])[]): void {
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      for (const row of rows) this.#upsert.run(...row);
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.isOpen && this.#database.isTransaction) this.#database.exec('ROLLBACK');
      this.#options.logger.error('store.marks-not-kept', { reason: messageOf(error) });
    }
  }
}
