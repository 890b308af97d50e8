import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

/**
 * SECURITY.md says of each attack which test holds what happens: a file, and often words of a
 * test's name in it. A file that was renamed, a test that was taken out or says something else now,
 * and a promise without a test are found here.
 */
const projectDir = join(import.meta.dirname, '..');
const files = globSync('test/**/*.ts', { cwd: projectDir });
const HEADER = '| attack | what happens | test |';
const UNTESTED = /\*\*not refused\*\*/;
/** `a/file.test.ts`, and behind a colon the words of names, up to the next file. */
const REFERENCE = /`([^`\s]+\.ts)`([^`]*)/g;

interface Row {
  readonly section: string;
  readonly attack: string;
  readonly outcome: string;
  readonly tests: string;
  /** In a section whose tests are in one file, which its introduction names. */
  readonly ownFile: string | undefined;
}

const { rows, strays } = readTables(readFileSync(join(projectDir, 'SECURITY.md'), 'utf8'));

function readTables(text: string): { readonly rows: readonly Row[]; readonly strays: string[] } {
  const found: Row[] = [];
  const outside: string[] = [];
  let [section, ownFile, isInTable] = ['', undefined as string | undefined, false];
  for (const line of text.split('\n')) {
    if (line.startsWith('## ')) [section, ownFile] = [line.slice(3), undefined];
    if (!line.startsWith('|')) {
      isInTable = false;
      ownFile ??= /by a real network stack: `([^`]+\.ts)`/.exec(line)?.[1];
    } else if (line === HEADER) isInTable = true;
    else if (!isInTable) outside.push(line);
    else if (!line.startsWith('|---')) {
      const [, attack = '', outcome = '', tests = ''] = line
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim());
      found.push({ section, attack, outcome, tests, ownFile });
    }
  }
  return { rows: found, strays: outside };
}

/** Each is named by the end of its path, from a folder on. */
function findFiles(named: string): readonly string[] {
  const end = named.replace(/^(?:\.\.\/)+/, '');
  return files.filter((file) => file === end || file.endsWith(`/${end}`));
}

/** What a row says of the names of tests, by file. */
function referencesOf({ tests, ownFile }: Row): readonly (readonly [string, string])[] {
  const named = [...tests.matchAll(REFERENCE)].map(
    ([, file = '', words = '']) => [file, words] as const,
  );
  const own = /^[^`]*/.exec(tests)?.[0] ?? '';
  return ownFile !== undefined && own !== '' ? [[ownFile, `: ${own}`], ...named] : named;
}

/** Names of a section's own file stand for themselves, others behind a colon. */
function namesIn(words: string): readonly string[] {
  const [, behind = ''] = /^:\s*(.*)$/s.exec(words.trim()) ?? [];
  return behind
    .split(';')
    .map((name) => name.trim().replace(/,$/, ''))
    .filter((name) => name !== '');
}

test('every attack of SECURITY.md is in a table', () => {
  assert.ok(rows.length > 100);
  assert.deepEqual(strays, []);
});

test('every attack names a test, or says that it is not refused', () => {
  const bare = rows.filter(
    (row) => referencesOf(row).length === 0 && !/`test\/\S*`/.test(row.tests),
  );
  assert.deepEqual(
    bare.filter(({ outcome }) => !UNTESTED.test(outcome)).map(({ attack }) => attack),
    [],
  );
});

test('every file that SECURITY.md names for a test is there, once', () => {
  const lost = rows.flatMap((row) =>
    referencesOf(row)
      .filter(([file]) => !file.startsWith('eslint') && findFiles(file).length !== 1)
      .map(([file]) => `${file}: ${row.attack}`),
  );
  assert.deepEqual(lost, []);
});

test('the words behind a file are of the name of a test in it', () => {
  const lost = rows.flatMap((row) =>
    referencesOf(row).flatMap(([file, words]) => {
      const [path] = findFiles(file);
      const text = path === undefined ? '' : readFileSync(join(projectDir, path), 'utf8');
      return namesIn(words)
        .filter((name) => !text.includes(name))
        .map((name) => `${file}: ${name}`);
    }),
  );
  assert.deepEqual(lost, []);
});
