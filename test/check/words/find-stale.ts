import type { Contents } from '../content-keys.ts';

const FOLDER = 'docs/reference/';

/** Finds differences between docs/reference/ and the generator's output. */
export function findStale(
  contents: Contents,
  generated: ReadonlyMap<string, string>,
): readonly string[] {
  const hint = 'run npm run docs';
  const kept = [...contents.keys()].filter((path) => path.startsWith(FOLDER));
  return [
    ...[...generated]
      .filter(([name, text]) => contents.get(FOLDER + name) !== text)
      .map(([name]) => `${FOLDER}${name}: out of date: ${hint}`),
    ...kept
      .filter((path) => !generated.has(path.slice(FOLDER.length)))
      .map((path) => `${path}: no page makes this file: ${hint}`),
  ];
}
