import { AppError, messageOf } from '../errors/app-error.ts';

/**
 * A key of the store with a value of another program. The store recovers when the key is repaired.
 */
export class BrokenKey extends AppError {
  constructor(key: string, cause?: unknown) {
    super('RECORD_UNREADABLE', `the key ${key} of the store holds another kind of value`, {
      details: { key },
      hint: `Look at it: redis-cli TYPE '${key}'. Restore the store from a backup.`,
      cause,
    });
  }
}

/** Returns whether a command, also one within a script, met a key of another type. */
export function isWrongType(error: unknown): boolean {
  return messageOf(error).includes('WRONGTYPE');
}

/** Names the key in an error about its type. @throws BrokenKey */
export async function namingKey<T>(key: string, asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    throw isWrongType(error) ? new BrokenKey(key, error) : error;
  }
}
