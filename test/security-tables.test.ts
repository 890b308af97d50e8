import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';

/**
 * Each page of docs/security has tables of attacks whose last column holds numbers of the list
 * "Tests" at the page's end. An entry there is a file, and words of a test's name in quotes.
 */
const projectDir = join(import.meta.dirname, '..');
const HEADER = /^\| Attack \|.* \| Tests \|$/;
const UNTESTED = /\*\*Not refused\*\*/;
const ENTRY = /^(\d+)\. `([^`]+\.ts)`(?:: "(.+)")?$/;

interface Row {
  readonly attack: string;
  readonly result: string;
  readonly tests: readonly number[];
}

interface Page {
  readonly path: string;
  readonly rows: readonly Row[];
  /** Lines of tables that are not tables of attacks. */
  readonly strays: readonly string[];
  readonly tests: ReadonlyMap<number, { readonly file: string; readonly words: string }>;
}

function readPage(path: string): Page {
  const rows: Row[] = [];
  const strays: string[] = [];
  const tests = new Map<number, { readonly file: string; readonly words: string }>();
  let isInTable = false;
  for (const line of readFileSync(join(projectDir, path), 'utf8').split('\n')) {
    const [, number, file = '', words = ''] = ENTRY.exec(line) ?? [];
    if (number !== undefined) tests.set(Number(number), { file, words });
    if (!line.startsWith('|')) isInTable = false;
    else if (HEADER.test(line)) isInTable = true;
    else if (!isInTable) strays.push(line);
    else if (!line.startsWith('|---')) rows.push(readRow(line));
  }
  return { path, rows, strays, tests };
}

function readRow(line: string): Row {
  const cells = line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
  const numbers = cells.at(-1)?.split(', ').map(Number) ?? [];
  return {
    attack: cells[0] ?? '',
    result: cells.at(-2) ?? '',
    tests: numbers.filter(Number.isInteger),
  };
}

const pages = globSync('docs/security/*.md', { cwd: projectDir })
  // The former has no table of attacks; the latter is written by its own test.
  .filter((path) => !['README.md', 'channel-frames.md'].includes(basename(path)))
  .map(readPage);

test('every table of the security pages is a table of attacks', () => {
  assert.ok(pages.flatMap(({ rows }) => rows).length > 150);
  for (const { path, strays } of pages) assert.deepEqual(strays, [], path);
});

test('every attack names a test of its page, or says that it is not refused', () => {
  for (const { path, rows, tests } of pages)
    for (const { attack, result, tests: numbers } of rows) {
      assert.ok(numbers.length > 0 || UNTESTED.test(result), `${path}: ${attack}`);
      for (const number of numbers) assert.ok(tests.has(number), `${path}: ${attack}: ${number}`);
    }
});

test('every test in the list of a security page is named by an attack of that page', () => {
  for (const { path, rows, tests } of pages) {
    const used = new Set(rows.flatMap((row) => row.tests));
    assert.deepEqual(
      [...tests.keys()].filter((number) => !used.has(number)),
      [],
      path,
    );
  }
});

test('every test that a security page lists exists, with the words of its name', () => {
  const lost = pages.flatMap(({ path, tests }) =>
    [...tests.values()].flatMap(({ file, words }) => {
      const source = join(projectDir, file);
      if (!existsSync(source)) return [`${path}: ${file}`];
      return readFileSync(source, 'utf8').includes(words) ? [] : [`${path}: ${file}: ${words}`];
    }),
  );
  assert.deepEqual(lost, []);
});
