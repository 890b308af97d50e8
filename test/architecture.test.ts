import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';

const projectDir = join(import.meta.dirname, '..');
const read = (name: string): string => readFileSync(join(projectDir, name), 'utf8');
const document = read('ARCHITECTURE.md');

function sectionOf(title: string): string {
  const [, section = ''] = document.split(`\n## ${title}\n`);
  return section.split('\n## ')[0] ?? '';
}

const filesIn = (text: string, quote: string): readonly string[] =>
  [...text.matchAll(new RegExp(`${quote}([a-z/-]+\\.ts)${quote}`, 'g'))].map(([, file = '']) =>
    basename(file),
  );

test('ARCHITECTURE.md lists the files in which the linter permits to reveal secrets', () => {
  const [, permitted = ''] =
    /const REVEALING = \[([^\]]*)\]/.exec(read('eslint.config.js')) ?? assert.fail();
  assert.deepEqual(
    filesIn(sectionOf('Where secrets are revealed'), '`').toSorted(),
    filesIn(permitted, "'").toSorted(),
  );
});

test('the tree in ARCHITECTURE.md has every folder of the programs, and no other', () => {
  const [, tree = ''] = /```\n([^]*?)```/.exec(sectionOf('The tree')) ?? assert.fail();
  const listed = new Map<string, string[]>();
  let top = '';
  for (const line of tree.split('\n')) {
    const [, program] = /^([a-z-]+)\//.exec(line) ?? [];
    if (program !== undefined) top = program;
    else if (/^ {2}\S/.test(line)) {
      const [names = ''] = line.trim().split(/ {2,}/);
      const folders = [...names.matchAll(/([a-z-]+)\//g)].map(([, name = '']) => name);
      listed.set(top, [...(listed.get(top) ?? []), ...folders]);
    }
  }
  for (const program of ['shared', 'noded', 'metad']) {
    const folders = readdirSync(join(projectDir, program), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    assert.deepEqual(listed.get(program)?.toSorted(), folders.toSorted(), program);
  }
});

test('every file that ARCHITECTURE.md names by its path exists', () => {
  const named = [...document.matchAll(/`((?:[a-z-]+\/)+[a-z-]+\.ts)`/g)].map(
    ([, path = '']) => path,
  );
  assert.ok(named.length > 20);
  const lost = named.filter(
    (path) => !['', 'noded'].some((folder) => existsSync(join(projectDir, folder, path))),
  );
  assert.deepEqual(lost, []);
});
