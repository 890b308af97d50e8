import { z } from 'zod';
import { MIB } from '../units/bytes.ts';

/**
 * Bytes of a value that becomes an environment variable. Linux accepts 128 KiB for a variable with
 * its name (MAX_ARG_STRLEN).
 */
export const MAX_VALUE_BYTES = 65_536;
/**
 * Bytes of all names and values of a table. Linux accepts 2 MiB of arguments and variables with the
 * usual stack of 8 MiB (execve(2)). The rest is for other variables.
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

/** Returns a schema that bounds each value and the table. */
export function boundedTable<Key extends z.ZodType<string, string>, Value extends z.ZodType>(
  key: Key & z.core.$ZodRecordKey,
  value: Value & z.ZodType<string | null>,
): z.ZodRecord<Key & z.core.$ZodRecordKey, Value> {
  return z.record(key, value as Value).refine(
    // The schema of the values only has strings and null.
    (texts) => sizeOfTexts(texts as Texts) <= MAX_TABLE_BYTES,
    { error: `names and values are larger than ${MAX_TABLE_BYTES} bytes in total` },
  );
}
