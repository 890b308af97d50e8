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
}

/**
 * Where the cluster's records live. Cluster-unique things (names, addresses, MACs) are records of
 * their own collection, claimed with `absent` in the same commit as their owner, so that two nodes
 * can never take the same one.
 */
export interface Store {
  /** @throws AppError RECORD_UNREADABLE, STORE_KEY */
  get(collection: string, id: string): Promise<StoredRecord | undefined>;
  /** All records of a collection, ordered by id. */
  list(collection: string): Promise<readonly ListedRecord[]>;
  /**
   * All writes or none. On success the new revisions are in the order of the writes (0 for a
   * deletion).
   * @throws StoreConflict of the first write whose expectation does not hold
   */
  commit(writes: readonly Write[]): Promise<readonly number[]>;
  /**
   * Calls back after changes in a collection by whoever it was, also when changes may have been
   * missed: a hint to read it again. Only engines that several nodes share have it.
   * @returns ends it
   */
  watch?(collection: string, onChange: () => void): () => void;
  /**
   * What in its settings or its state may lose records. Only engines with a server have it.
   * @throws AppError STORE_UNAVAILABLE
   */
  risks?(): Promise<readonly StoreRisk[]>;
  /** Those that have records. Only engines that several nodes share have it. */
  collections?(): Promise<readonly string[]>;
  close(): Promise<void>;
}
