import type { KeyTable, ParameterKey } from '#shared/contract/parameter-keys.ts';
import type { KeyedOption } from '../completion/command.ts';
import { formatItems, wrapText } from './layout.ts';

/** Returns the output of `--net help` and similar. */
export function formatKeys(
  option: string,
  { keys, syntax }: KeyedOption,
  columns: number,
): readonly string[] {
  const items = Object.entries(keys).map(([key, row]): readonly [string, string] => [
    row.value === '' ? key : `${key}=${row.value}`,
    describeKey(row),
  ]);
  return [
    ...wrapText(`Keys of ${option} ${syntax}:`, columns),
    '',
    ...formatItems(items, columns),
    '',
    ...describeEffects(keys).flatMap((line) => wrapText(line, columns)),
    ...wrapText('Unset a key: key=none.', columns),
  ];
}

/** Returns when changes to an existing instance take effect, by key. */
function describeEffects(keys: KeyTable): readonly string[] {
  return (['at once', 'next start'] as const).flatMap((effect) => {
    const named = Object.entries(keys).flatMap(([key, row]) =>
      row.effective === effect ? [key] : [],
    );
    const label = effect === 'at once' ? 'at once' : 'at the next start';
    return named.length === 0 ? [] : [`Changes take effect ${label}: ${named.join(', ')}.`];
  });
}

function describeKey({ help, unit, default: usual }: ParameterKey): string {
  const facts = [
    ...(unit === undefined ? [] : [`Unit: ${unit}.`]),
    ...(usual === null ? [] : [`Default: ${usual}.`]),
  ];
  return [help, ...facts].join(' ');
}
