import { AppError, isAppError } from '../errors/app-error.ts';
import { MIB } from '../units/bytes.ts';
import { unreadable } from './readable-records.ts';
import type { ListedRecord, StoredRecord, Write } from './store.ts';

/**
 * Version of the layout and fields of records. An engine upgrades older stores and refuses newer
 * ones on opening: a program would drop unknown fields of a record at its first change.
 * fixtures/upgrade/layouts.json lists the contents of each version.
 */
export const STORE_SCHEMA = 2;
/** Three documents of 1 MiB in base64, keys and metadata fit in four times; more is a mistake. */
const MAX_VALUE_BYTES = 16 * MIB;
/** A sealed value is a third longer. */
const MAX_TEXT_CHARACTERS = 2 * MAX_VALUE_BYTES;
const MAX_ID_BYTES = 512;
const MAX_VERSION_CHARACTERS = 32;
const COLLECTION = /^[a-z][a-z0-9-]{0,63}$/;

export interface EncodedWrite {
  readonly collection: string;
  readonly id: string;
  readonly expected: number | 'absent' | 'any';
  /** The value as JSON; null deletes the record. */
  readonly json: string | null;
  /** 0: none. */
  readonly stamp: number;
}

/**
 * Encodes writes for both engines.
 * @throws AppError VALIDATION for a value that is too large; plain Error for a bug of the caller
 */
export function encodeWrites(writes: readonly Write[]): readonly EncodedWrite[] {
  const seen = new Set<string>();
  return writes.map((write) => {
    checkKey(write.collection, write.id);
    const key = `${write.collection}/${write.id}`;
    if (seen.has(key)) throw new Error(`two writes of ${key} in one commit`);
    seen.add(key);
    return {
      collection: write.collection,
      id: write.id,
      expected: write.expected,
      json: write.value === undefined ? null : encodeValue(key, write.value),
      stamp: write.stamp ?? 0,
    };
  });
}

export function checkKey(collection: string, id: string): void {
  checkCollection(collection);
  const sizeBytes = Buffer.byteLength(id);
  // The engines do not preserve lone surrogates and NULs.
  if (sizeBytes === 0 || sizeBytes > MAX_ID_BYTES || id.includes('\0') || !id.isWellFormed()) {
    throw new Error(`not a record id: ${JSON.stringify(id.slice(0, 100))}`);
  }
}

export function checkCollection(collection: string): void {
  if (!COLLECTION.test(collection)) throw new Error(`not a collection: ${collection}`);
}

/** @throws AppError RECORD_UNREADABLE for text that this program did not write */
export function decodeValue(collection: string, id: string, json: string): unknown {
  if (json.length > MAX_TEXT_CHARACTERS) throw unreadable(collection, id, 'it is too large');
  try {
    return JSON.parse(json) as unknown;
  } catch {
    // The parser's message quotes the text, which may be private.
    throw unreadable(collection, id, 'it is not JSON');
  }
}

/** Decodes a record of a list: an error of `decode` becomes its problem. */
export function decodeListed(
  key: Pick<StoredRecord, 'id' | 'revision'>,
  decode: () => unknown,
): ListedRecord {
  try {
    return { ...key, value: decode() };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { ...key, value: undefined, problem: error.message };
  }
}

export function newerStore(place: string, found: number | string): AppError {
  // A server may hold any text.
  const version = String(found).slice(0, MAX_VERSION_CHARACTERS);
  return new AppError(
    'STORE_VERSION',
    `the store ${place} has schema version ${version}, but this program supports versions up to ${STORE_SCHEMA}`,
    {
      details: { place, version, supported: STORE_SCHEMA },
      hint: 'Start the newer release that wrote it, or restore the backup made before the upgrade.',
    },
  );
}

/** Compares ids for listings, by their UTF-8 bytes. */
export function compareIds(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function encodeValue(key: string, value: unknown): string {
  // TypeScript's declaration omits undefined, the result for a function or undefined.
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) throw new Error(`the value of ${key} is not JSON`);
  if (Buffer.byteLength(json) > MAX_VALUE_BYTES) {
    throw new AppError('VALIDATION', `the record ${key} is larger than 16 MiB`, {
      hint: 'Shorten the documents and parameters.',
    });
  }
  return json;
}
