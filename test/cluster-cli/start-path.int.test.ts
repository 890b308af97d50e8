import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { build, type Metafile } from 'esbuild';
import { programs } from '../../cluster-cli/programs.ts';

const top = join(import.meta.dirname, '../..');
/** Modules that Node has already loaded at a program's start, or that load in almost no time. */
const CHEAP = [
  'node:buffer',
  'node:events',
  'node:fs',
  'node:module',
  'node:os',
  'node:path',
  'node:util',
];
/**
 * Slightly above the present count. A program that loads its commands' modules has ten times as
 * many.
 */
const MOST_MODULES = 45;

let graph: Metafile['inputs'];
before(async () => {
  const { metafile } = await build({
    entryPoints: [join(top, 'cluster-cli/main-commands.ts')],
    ...{ absWorkingDir: top, outdir: '/', bundle: true, splitting: true, write: false },
    ...{ metafile: true, platform: 'node', format: 'esm', logLevel: 'error' },
    external: ['koffi', 'netlink', 'esbuild'],
  });
  graph = metafile.inputs;
});

/** Returns all modules that load with the given files before any of their code runs. */
function loadedWith(files: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const waiting = [...files];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    // Other imports of commander are not in the bundle: see scripts/bundle.ts.
    if (file.includes('node_modules/')) continue;
    const imports = graph[file]?.imports ?? [];
    waiting.push(
      ...imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => path),
    );
  }
  return [...found];
}

for (const name of Object.keys(programs)) {
  test(`${name} --help loads commander and little else`, () => {
    const folder = name.replace('gnt-', '');
    const program = `cluster-cli/commands/${folder}/${folder}-program.ts`;
    assert.ok(graph[program], program);
    const loaded = loadedWith(['cluster-cli/main-commands.ts', program]);
    const foreign = loaded.filter((file) => file.includes('node_modules/'));
    assert.deepEqual(
      foreign.filter((file) => !file.startsWith('node_modules/commander/')),
      [],
    );
    const ofNode = loaded.filter((file) => file.startsWith('node:'));
    assert.deepEqual(
      ofNode.filter((file) => !CHEAP.includes(file)),
      [],
    );
    assert.ok(loaded.length <= MOST_MODULES, `${loaded.length}: ${loaded.join(', ')}`);
  });
}

/** Printing a list or a record takes less than half the time of loading validators. */
const READING = ['instance/read.ts', 'node/node.ts'];
for (const file of READING) {
  test(`${file} reads without validators, OpenSSL and a collator`, () => {
    const loaded = loadedWith([
      `cluster-cli/commands/${file}`,
      'cluster-cli/client/node-client.ts',
    ]);
    const heavy = /^node_modules\/(?!commander\/)|^node:(crypto|child_process)$|client\/answers/;
    assert.deepEqual(
      loaded.filter((name) => heavy.test(name)),
      [],
    );
  });
}

test('nothing that a command begins with makes a collator or a segmenter', async () => {
  const files = Object.keys(programs).map((name) => {
    const folder = name.replace('gnt-', '');
    return `cluster-cli/commands/${folder}/${folder}-program.ts`;
  });
  const loaded = loadedWith(['cluster-cli/main-commands.ts', ...files]);
  for (const file of loaded.filter((name) => name.endsWith('.ts'))) {
    const text = await readFile(join(top, file), 'utf8');
    assert.doesNotMatch(text, /^(export )?const .*new Intl\./m, file);
  }
});
