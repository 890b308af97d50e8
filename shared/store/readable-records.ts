import { othersTurn } from '#shared/clock/turns.ts';
import type { z } from 'zod';
import { AppError } from '../errors/app-error.ts';
import type { Logger } from '../log/log.ts';
import type { ListedRecord, Store } from './store.ts';

const MAX_ID_CHARACTERS = 512;

/** A record that no part of this program can use. It is left as it is, and out of every list. */
export interface RecordProblem {
  readonly collection: string;
  readonly id: string;
  /** Names the field, never its value: that may be private. */
  readonly reason: string;
}

/** The records that are set aside, as they were found when their collection was last listed. */
export interface RecordProblems {
  list(): readonly RecordProblem[];
  replace(collection: string, problems: readonly RecordProblem[]): void;
}

/** Logs each problem once. */
export function createRecordProblems(logger: Logger): RecordProblems {
  const known = new Map<string, readonly RecordProblem[]>();
  return {
    list: () => [...known.values()].flat(),
    replace: (collection, problems) => {
      const before = new Set(known.get(collection)?.map(({ id }) => id));
      for (const problem of problems) {
        if (!before.has(problem.id)) logger.error('record.set-aside', { ...problem });
      }
      known.set(collection, problems);
    },
  };
}

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
 * All records of a collection that can be read, in the order of their ids; one bad record must not
 * keep the others from their work.
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
 * The same in slices, for collections of thousands: of no one moment, in no order. Others get their
 * turn in between.
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
 * What can be read of some records, and why the rest cannot. To check one may take a millisecond:
 * others get their turn in between.
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
  // The id is of whoever wrote to the store.
  return new UnreadableRecord(collection, id.slice(0, MAX_ID_CHARACTERS), reason);
}
