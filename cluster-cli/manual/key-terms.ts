import type { KeyTable } from '#shared/contract/parameter-keys.ts';
import { type Block, terms } from './page.ts';

const EFFECTIVE = {
  'at once': 'Takes effect at once.',
  'next start': 'Takes effect with the next start.',
  installation: '',
  fixed: '',
} as const;

/** Returns the keys of an option with syntax, unit, default and effect. */
export function keyTerms(keys: KeyTable): Block {
  return terms(
    Object.entries(keys).map(([key, { value, default: preset, help, unit, effective }]) => [
      value === '' ? key : `${key}=${value}`,
      [
        help,
        ...(unit === undefined ? [] : [`Unit: ${unit}.`]),
        ...(preset === null ? [] : [`Default: \`${preset}\`.`]),
        EFFECTIVE[effective],
      ]
        .join(' ')
        .trim(),
    ]),
  );
}
