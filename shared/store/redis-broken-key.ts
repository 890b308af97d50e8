import { AppError, messageOf } from '../errors/app-error.ts';

/** A key of the store that another program wrote. Its repair brings the store back. */
export class BrokenKey extends AppError {
  constructor(key: string, cause?: unknown) {
    super('RECORD_UNREADABLE', `the key ${key} of the store holds another kind of value`, {
      details: { key },
      hint: `Look at it: redis-cli TYPE '${key}'. Restore the store from a backup.`,
      cause,
    });
  }
}

/** Whether a command, or one of a script, met a key of another type. */
export function isWrongType(error: unknown): boolean {
  return messageOf(error).includes('WRONGTYPE');
}

/** Names the key where it has another type. @throws BrokenKey */
export async function namingKey<T>(key: string, asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    throw isWrongType(error) ? new BrokenKey(key, error) : error;
  }
}
