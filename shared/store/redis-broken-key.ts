import { AppError, messageOf } from '../errors/app-error.ts';

/** Returns the error for a key of the store that another program wrote. */
export function brokenKey(key: string, cause?: unknown): AppError {
  return new AppError(
    'RECORD_UNREADABLE',
    `the key ${key} of the store holds another kind of value`,
    {
      details: { key },
      hint: `Look at it: redis-cli TYPE '${key}'. Restore the store from a backup.`,
      cause,
    },
  );
}

/** Whether a command, or one of a script, met a key of another type. */
export function isWrongType(error: unknown): boolean {
  return messageOf(error).includes('WRONGTYPE');
}

/** Names the key where it has another type. @throws AppError RECORD_UNREADABLE */
export async function namingKey<T>(key: string, asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    throw isWrongType(error) ? brokenKey(key, error) : error;
  }
}
