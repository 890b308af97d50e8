import { othersTurn } from '#shared/clock/turns.ts';
import type { z } from 'zod';
import { AppError } from '../errors/app-error.ts';
import type { Logger } from '../log/log.ts';
import type { ListedRecord, Store } from './store.ts';

const MAX_ID_CHARACTERS = 512;

/** A record that this program cannot use. It stays in the store, and is omitted from every list. */
export interface RecordProblem {
  readonly collection: string;
  readonly id: string;
  /** Names the field, never its value, which may be private. */
  readonly reason: string;
}

/** The omitted records, as of the last listing of each collection. */
export function createRecordProblems(logger: Logger) {
  const known = new Map<string, readonly RecordProblem[]>();
  return {
    list: (): readonly RecordProblem[] => [...known.values()].flat(),
    replace: (collection: string, problems: readonly RecordProblem[]): void => {
      const before = new Set(known.get(collection)?.map(({ id }) => id));
      for (const problem of problems) {
        if (!before.has(problem.id)) logger.error('record.set-aside', { ...problem });
      }
      known.set(collection, problems);
    },
  };
}

export type RecordProblems = ReturnType<typeof createRecordProblems>;

/** @throws AppError RECORD_UNREADABLE, STORE_KEY */
export function parseRecord<T>(
  schema: z.ZodType<T>,
  collection: string,
  { id, value, problem }: Pick<ListedRecord, 'id' | 'value' | 'problem'>,
): T {
  if (problem !== undefined) throw unreadable(collection, id, problem);
  if (value === undefined) throw unreadable(collection, id, 'it does not exist');
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw unreadable(collection, id, `field ${issue?.path.join('.') || '(all)'}: ${issue?.code}`);
}

/**
 * Returns all readable records of a collection, in the order of their ids. A bad record must not
 * block the others.
 */
export async function listRecords<T>(
  store: Store,
  collection: string,
  schema: z.ZodType<T>,
  problems: RecordProblems,
): Promise<readonly T[]> {
  const { readable, bad } = await sortOut(schema, collection, await store.list(collection));
  problems.replace(collection, bad);
  return readable.map(({ value }) => value);
}

/**
 * Returns the same for collections of thousands: unordered, not from one moment. Other work runs
 * between slices.
 */
export async function scanRecords<T>(
  store: Pick<Store, 'scan'>,
  collection: string,
  schema: z.ZodType<T>,
  problems: RecordProblems,
): Promise<readonly T[]> {
  const readable = new Map<string, T>();
  const bad = new Map<string, RecordProblem>();
  for await (const slice of store.scan(collection)) {
    const found = await sortOut(schema, collection, slice);
    for (const { id, value } of found.readable) readable.set(id, value);
    for (const problem of found.bad) bad.set(problem.id, problem);
  }
  problems.replace(collection, [...bad.values()]);
  return [...readable.values()];
}

export interface SortedOut<T> {
  readonly readable: readonly { readonly id: string; readonly value: T }[];
  readonly bad: readonly RecordProblem[];
}

/**
 * Parses records, and returns the reasons for unreadable ones. A check may take a millisecond, so
 * other work runs in between.
 */
export async function sortOut<T>(
  schema: z.ZodType<T>,
  collection: string,
  records: readonly ListedRecord[],
): Promise<SortedOut<T>> {
  const readable: { id: string; value: T }[] = [];
  const bad: RecordProblem[] = [];
  for (const record of records) {
    try {
      readable.push({ id: record.id, value: parseRecord(schema, collection, record) });
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      bad.push({ collection, id: record.id, reason: error.reason });
    }
    await othersTurn();
  }
  return { readable, bad };
}

class UnreadableRecord extends AppError {
  readonly reason: string;
  constructor(collection: string, id: string, reason: string) {
    super('RECORD_UNREADABLE', `cannot read the record ${collection}/${id}: ${reason}`, {
      details: { collection, id },
      hint: 'The record was not changed. Restore the store from a backup, or start the release that wrote the record.',
    });
    this.reason = reason;
  }
}

export function unreadable(collection: string, id: string, reason: string): AppError {
  // The author of a foreign record chose its id.
  return new UnreadableRecord(collection, id.slice(0, MAX_ID_CHARACTERS), reason);
}
