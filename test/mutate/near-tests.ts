import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { findTestFiles, isPure } from '../runner/groups.ts';

/** From a test that starts a program to its smallest parts. */
const HOPS = 8;
const IMPORT = /(?:from |import\()\s*'([.#][^']*\.ts)'/g;
/** A test starts this file in a child process, which inherits the loader hook. */
const START = /'((?:metad|noded|cluster-cli)\/[^' ]*\.ts)'/g;
/** The same by its launcher, which runs the sources if there is no newer bundle. */
const LAUNCH = /['/]gnt-(noded|metad)'/g;
/** Files that start programs for tests. */
const STARTS = /^(?:test|scripts\/demo)\//;

/** Compares the reference documents with the code that they are generated from. */
export const REFERENCE = 'test/scripts/docs/generate.int.test.ts';

/** Files that only lead to others. A helper of a test counts as a part of the test, too. */
const LEADS_ON =
  /^test\/|^cluster-cli\/(main-commands|create-command|programs)\.ts$|^cluster-cli\/.*\/program[^/]*\.ts$/;

/**
 * Returns a function that gives the fast tests that reach a file by imports or by starting its
 * program. Pure and near tests come first.
 */
export function findNearTests(projectDir: string): (file: string) => readonly string[] {
  const imports = createImports(projectDir);
  const reached = findTestFiles(projectDir).fast.map((test) => ({
    test,
    hops: reachFrom(test, imports),
    text: readFileSync(join(projectDir, test), 'utf8'),
  }));
  return (file) => {
    const wing = `test/${dirname(file).split('/').slice(0, 2).join('/')}/`;
    const words = new Set(file.split(/[/.-]/));
    const sharedWords = (test: string): number =>
      basename(test)
        .split(/[-.]/)
        .filter((word) => words.has(word)).length;
    const name = new RegExp(`\\b${basename(file, '.ts')}\\b`);
    const rank = ({ test, hops, text }: (typeof reached)[number]): number =>
      (hops.get(file) ?? 0) +
      (isPure(test) ? 0 : 8) -
      (name.test(text) ? 2 : 0) -
      2 * sharedWords(test) -
      (test.startsWith(wing) ? 4 : 0) -
      (test.startsWith(`test/${dirname(file)}/`) ? 4 : 0);
    return reached
      .filter(({ hops }) => hops.has(file))
      .sort((a, b) => rank(a) - rank(b))
      .map(({ test }) => test);
  };
}

type Imports = (file: string) => readonly string[];

/** Returns the files below a test, by the number of hops to each. */
function reachFrom(test: string, imports: Imports): ReadonlyMap<string, number> {
  const hops = new Map([[test, 0]]);
  const waiting = [test];
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    for (const each of imports(file)) {
      const cost = (hops.get(file) ?? 0) + (LEADS_ON.test(each) ? 0 : 1);
      if (cost > HOPS || (hops.get(each) ?? Infinity) <= cost) continue;
      hops.set(each, cost);
      waiting.push(each);
    }
  }
  return hops;
}

function createImports(projectDir: string): Imports {
  const known = new Map<string, readonly string[]>();
  const read = (file: string): readonly string[] => {
    const text = readFileSync(join(projectDir, file), 'utf8');
    const imported = [...text.matchAll(IMPORT)].map(([, name = '']) =>
      name.startsWith('#') ? name.slice(1) : join(dirname(file), name),
    );
    const namesIn = (pattern: RegExp): readonly string[] =>
      STARTS.test(file) ? [...text.matchAll(pattern)].map(([, name = '']) => name) : [];
    const launched = namesIn(LAUNCH).map((program) => `${program}/main.ts`);
    return [...imported, ...namesIn(START), ...launched].filter((each) =>
      existsSync(join(projectDir, each)),
    );
  };
  return (file) => {
    const found = known.get(file) ?? read(file);
    known.set(file, found);
    return found;
  };
}
