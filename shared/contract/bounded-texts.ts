import { z } from 'zod';
import { MIB } from '../units/bytes.ts';

/**
 * Bytes of a value that becomes an environment variable. Linux takes 128 KiB for one variable
 * (MAX_ARG_STRLEN), its name included.
 */
export const MAX_VALUE_BYTES = 65_536;
/**
 * Bytes of all values and names of a table. Linux takes 2 MiB for all arguments and variables of a
 * program, with the usual stack of 8 MiB (execve(2)); the rest is for the variables beside them.
 */
export const MAX_TABLE_BYTES = MIB;

export const boundedText = z
  .string()
  .max(MAX_VALUE_BYTES)
  .refine((text) => Buffer.byteLength(text) <= MAX_VALUE_BYTES, {
    error: `has more than ${MAX_VALUE_BYTES} bytes`,
  });

type Texts = Readonly<Record<string, string | null>>;

export function sizeOfTexts(texts: Texts): number {
  return Object.entries(texts).reduce(
    (bytes, [name, text]) => bytes + Buffer.byteLength(name) + Buffer.byteLength(text ?? ''),
    0,
  );
}

/** Bounds the table as a whole, too. */
export function boundedTable<Key extends z.ZodType<string, string>, Value extends z.ZodType>(
  key: Key & z.core.$ZodRecordKey,
  value: Value & z.ZodType<string | null>,
): z.ZodRecord<Key & z.core.$ZodRecordKey, Value> {
  return z.record(key, value as Value).refine(
    // The values of the table are texts, or null.
    (texts) => sizeOfTexts(texts as Texts) <= MAX_TABLE_BYTES,
    { error: `names and values are larger than ${MAX_TABLE_BYTES} bytes in total` },
  );
}
