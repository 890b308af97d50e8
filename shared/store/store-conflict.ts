import { AppError } from '../errors/app-error.ts';

/**
 * A write whose expectation does not hold, because another writer was faster. Nothing of its commit
 * was written.
 */
export class StoreConflict extends AppError {
  readonly collection: string;
  readonly id: string;

  constructor(collection: string, id: string) {
    super('CONFLICT', `another process changed ${collection}/${id} at the same time`, {
      details: { collection, id },
      hint: 'Read it again and repeat the operation.',
    });
    this.collection = collection;
    this.id = id;
  }
}

/**
 * A stamp is not newer than that of another node in the collection. Nothing of the commit was
 * written.
 */
export class StampBehind extends Error {
  readonly collection: string;
  readonly newest: number;

  constructor(collection: string, newest: number) {
    super(`the stamp of ${collection} is not above ${newest}`);
    this.collection = collection;
    this.newest = newest;
  }
}
