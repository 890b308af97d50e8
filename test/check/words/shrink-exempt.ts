import { isAbove, type Places } from './judge-prose.ts';

/** Places by check. */
export type Exempt = Readonly<Record<string, readonly string[]>>;

/** Returns the findings of documents that are not exempt, and the exemptions without a finding. */
export function withoutExempt(
  kind: string,
  found: ReadonlyMap<string, string>,
  exempt: readonly string[],
): readonly string[] {
  const known = new Set(exempt);
  return [
    ...[...found].filter(([path]) => !known.has(path)).map(([, finding]) => finding),
    ...exempt
      .filter((path) => !found.has(path))
      .map((path) => `${path}: passes the check ${kind}: remove it from exempt.ts`),
  ];
}

/** Returns the exemptions that are still needed; never adds one. */
export function shrinkExempt<T extends Exempt>(
  exempt: T,
  places: Readonly<Record<string, Places>>,
  documents: Readonly<Record<string, ReadonlyMap<string, string>>>,
): T {
  const isNeeded = (kind: string, place: string): boolean => {
    const count = places[kind]?.get(place);
    return documents[kind]?.has(place) ?? (count !== undefined && isAbove(count));
  };
  const entries = Object.entries(exempt).map(([kind, list]) => [
    kind,
    list.filter((place) => isNeeded(kind, place)),
  ]);
  // The keys are the same.
  return Object.fromEntries(entries) as T;
}

/** Prettier's line width. */
const COLUMNS = 100;

/** Renders exempt.ts as Prettier formats it. */
export function renderExempt(exempt: Exempt): string {
  const lists = Object.entries(exempt).map(([kind, places]) => {
    const quoted = [...places].sort().map((place) => `'${place}'`);
    const line = `  ${kind}: [${quoted.join(', ')}],`;
    if (line.length <= COLUMNS) return line;
    return [`  ${kind}: [`, ...quoted.map((place) => `    ${place},`), '  ],'].join('\n');
  });
  return `/**
 * Places that do not pass a check yet, by check: documents by path, strings and comments by folder.
 * The texts of these places are being rewritten. The lists only shrink: an entry that passes its
 * check must be removed (\`node test/check/words/main.ts --shrink\`).
 */
export const exempt = {
${lists.join('\n')}
} as const satisfies Record<string, readonly string[]>;
`;
}
