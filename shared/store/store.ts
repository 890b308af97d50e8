import type { StoreRisk } from './redis-risks.ts';

/** A stored record: JSON text and the revision of its last write. */
export interface StoredRecord {
  readonly id: string;
  /** Starts at 1 and grows with each write of this record. */
  readonly revision: number;
  readonly value: unknown;
}

/** A record of a list; an unreadable one has a problem in place of its value. */
export interface ListedRecord extends StoredRecord {
  readonly problem?: string;
}

/**
 * One write of a commit. `expected` is the revision that the writer saw: `absent` claims a free id.
 * `value: undefined` deletes.
 */
export interface Write {
  readonly collection: string;
  readonly id: string;
  readonly expected: number | 'absent' | 'any';
  readonly value: unknown;
  /**
   * Sealed in the value; grows over all writes of a collection. Engines of several nodes refuse a
   * lower one from a writer that has not seen the previous record.
   */
  readonly stamp?: number;
}

/**
 * Takes the ids of written or deleted records, each once. Null: any may have changed. An empty
 * list: the store was away, and nothing changed.
 */
export type OnChanges = (ids: readonly string[] | null) => void;

export interface Watch {
  /**
   * Resolves when all earlier commits were reported.
   * @throws AppError STORE_UNAVAILABLE
   */
  readonly caughtUp: () => Promise<void>;
  readonly end: () => void;
}

/**
 * The store of the cluster's records. Cluster-unique values (names, addresses, MACs) are records of
 * their own collections, claimed with `absent` in the same commit as their owner, so that two nodes
 * can never take the same value.
 */
export interface Store {
  /** @throws AppError RECORD_UNREADABLE, STORE_KEY */
  get(collection: string, id: string): Promise<StoredRecord | undefined>;
  /**
   * Returns the existing records of some ids, in the given order. Ask only for as many as can be
   * read in a few milliseconds.
   */
  getSome(collection: string, ids: readonly string[]): Promise<readonly ListedRecord[]>;
  /** Returns all records of a collection, ordered by id. */
  list(collection: string): Promise<readonly ListedRecord[]>;
  /**
   * Returns all records in slices, for large collections: other work runs in between. Unordered,
   * not from one moment, records perhaps twice; each record that exists during the whole scan is
   * included.
   */
  scan(collection: string): AsyncIterable<readonly ListedRecord[]>;
  /** Returns the ids of all records, unordered, without opening the records. */
  ids(collection: string): Promise<readonly string[]>;
  /**
   * Applies all writes or none. Returns the new revisions in the order of the writes (0 for a
   * deletion).
   * @throws StoreConflict of the first write whose expectation does not hold; StampBehind
   */
  commit(writes: readonly Write[]): Promise<readonly number[]>;
  /**
   * Calls back with null once it listens, then after changes by any writer, in order, and after
   * each absence of the store.
   */
  watch(collection: string, onChanges: OnChanges): Watch;
  /**
   * Called before a read; the result tells whether the data outlasts a failover. Only in engines
   * that may revert unacknowledged writes.
   */
  acknowledgement?(): () => Promise<boolean>;
  /**
   * Returns settings or states that may lose records. Only in engines with a server.
   * @throws AppError STORE_UNAVAILABLE
   */
  risks?(): Promise<readonly StoreRisk[]>;
  /** Returns the collections that have records. Only in engines of several nodes. */
  collections?(): Promise<readonly string[]>;
  close(): Promise<void>;
}
