import { z } from 'zod';

/** Records have the name as their ID, which has this limit. */
const MAX_OS_NAME_BYTES = 255;

/** `debootstrap` or `debootstrap+bookworm`. Definitions check their names and variants. */
export const osNameWithVariant = z
  .string()
  .refine((text) => Buffer.byteLength(text) <= MAX_OS_NAME_BYTES, {
    error: `longer than ${MAX_OS_NAME_BYTES} bytes`,
    abort: true,
  })
  .refine((text) => text !== '' && !text.startsWith('+'), {
    error: 'not an OS name: use the name of the folder, plus +VARIANT if it has variants',
  });

/** Splits `debootstrap+bookworm` at its first plus, without a check of the parts. */
export function splitOsName(text: string): {
  readonly name: string;
  readonly variant: string | null;
} {
  const plus = text.indexOf('+');
  if (plus === -1) return { name: text, variant: null };
  return { name: text.slice(0, plus), variant: text.slice(plus + 1) };
}
