import type { StoreRisk } from './redis-risks.ts';

/** A record as it is kept: JSON text with the revision under which it was written. */
export interface StoredRecord {
  readonly id: string;
  /** Grows with each write of this record; starts at 1. */
  readonly revision: number;
  readonly value: unknown;
}

/**
 * One of a list: a record that cannot be opened says why, and has no value; the others of its
 * collection are there all the same.
 */
export interface ListedRecord extends StoredRecord {
  readonly problem?: string;
}

/**
 * One write of a commit. `expected` is the revision that the writer saw: `absent` claims an id that
 * nobody has. `value: undefined` deletes.
 */
export interface Write {
  readonly collection: string;
  readonly id: string;
  readonly expected: number | 'absent' | 'any';
  readonly value: unknown;
  /**
   * It is sealed in the value and grows over all writes of a collection. Engines that several nodes
   * share refuse one that does not grow, of a writer that has not seen the record before it.
   */
  readonly stamp?: number;
}

/**
 * The ids of records that were written or deleted, each once; null: any of them may have been. None
 * after a time in which the store was away and nothing changed.
 */
export type OnChanges = (ids: readonly string[] | null) => void;

export interface Watch {
  /**
   * Resolves when all was told that was committed before the call.
   * @throws AppError STORE_UNAVAILABLE
   */
  readonly caughtUp: () => Promise<void>;
  readonly end: () => void;
}

/**
 * Where the cluster's records live. Cluster-unique things (names, addresses, MACs) are records of
 * their own collection, claimed with `absent` in the same commit as their owner, so that two nodes
 * can never take the same one.
 */
export interface Store {
  /** @throws AppError RECORD_UNREADABLE, STORE_KEY */
  get(collection: string, id: string): Promise<StoredRecord | undefined>;
  /**
   * Those of some records that are there, in the order of their ids as they were given: one
   * question for as many as are read in a few milliseconds.
   */
  getSome(collection: string, ids: readonly string[]): Promise<readonly ListedRecord[]>;
  /** All records of a collection, ordered by id. */
  list(collection: string): Promise<readonly ListedRecord[]>;
  /**
   * All records in slices, in no order, a record perhaps twice: of no one moment, but each that is
   * there all the while. For many records, which are not to keep everybody else waiting.
   */
  scan(collection: string): AsyncIterable<readonly ListedRecord[]>;
  /** The ids of all records, in no order, without a look at the records. */
  ids(collection: string): Promise<readonly string[]>;
  /**
   * All writes or none. On success the new revisions are in the order of the writes (0 for a
   * deletion).
   * @throws StoreConflict of the first write whose expectation does not hold; StampBehind
   */
  commit(writes: readonly Write[]): Promise<readonly number[]>;
  /**
   * Calls back once it listens, with null; then after changes in a collection by whoever it was, in
   * their order; and after each time in which the store was away.
   */
  watch(collection: string, onChanges: OnChanges): Watch;
  /**
   * Taken before something is read, it tells afterwards whether that outlasts whatever the engine
   * is to outlast. Only engines have it that may take back what was not told to be written.
   */
  acknowledgement?(): () => Promise<boolean>;
  /**
   * What in its settings or its state may lose records. Only engines with a server have it.
   * @throws AppError STORE_UNAVAILABLE
   */
  risks?(): Promise<readonly StoreRisk[]>;
  /** Those that have records. Only engines that several nodes share have it. */
  collections?(): Promise<readonly string[]>;
  close(): Promise<void>;
}
