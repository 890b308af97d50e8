import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Command } from 'commander';
import { createApplianceProgram, type ApplianceActions } from '../../appliance/program.ts';
import { OPTIONS } from '../../metad/config/options.ts';
import { createNodedProgram } from '../../noded/wiring/program.ts';
import { standIn } from '../../scripts/docs/stand-in.ts';
import { loadPrograms } from '../../scripts/docs/pages/commands.ts';
import { collectHints, findUnknown, type Hint } from './hints.ts';

const top = join(import.meta.dirname, '../..');
let programs: ReadonlyMap<string, Command>;
before(async () => {
  const trees = [...(await loadPrograms()), createApplianceProgram(standIn<ApplianceActions>())];
  programs = new Map(trees.map((program) => [program.name(), program]));
});

async function collectAll(): Promise<readonly Hint[]> {
  const found: Hint[] = [];
  for (const folder of ['appliance', 'cluster-cli', 'metad', 'noded', 'shared']) {
    const entries = await readdir(join(top, folder), { recursive: true });
    for (const entry of entries.filter((name) => name.endsWith('.ts')).sort()) {
      const path = `${folder}/${entry}`;
      const source = await readFile(join(top, path), 'utf8');
      if (/\bhint\b|gnt-/.test(source)) found.push(...collectHints(path, source));
    }
  }
  return found;
}

const ofDaemons = [
  ...createNodedProgram('').options.flatMap(({ long }) => long ?? []),
  ...Object.keys(OPTIONS).map((name) => `--${name}`),
];

test('each command and option that a hint names exists', async () => {
  const hints = await collectAll();
  assert.ok(hints.length > 300, `only ${hints.length} hints were found`);
  const faults = hints.flatMap((hint) =>
    findUnknown(hint, programs, ofDaemons).map((fault) => `${hint.place}: ${fault} (${hint.text})`),
  );
  assert.deepEqual(faults, []);
});

/** Lower-case names that may begin a sentence. */
const LOWER_CASE_NAMES = new Set(
  'apt-get chmod cloud-init cluster.key for ip=pool lvchange modprobe mv redis-cli scp ssh-keygen sysctl systemctl timedatectl udev'.split(
    ' ',
  ),
);

test('a hint begins with a capital letter or with a command', async () => {
  const faults = (await collectAll())
    .filter(({ isHint, isWhole, text }) => isHint && isWhole && /^[a-z]/.test(text))
    .filter(({ text }) => {
      const [word = ''] = text.split(/[ ,;]/);
      return !word.startsWith('gnt-') && !LOWER_CASE_NAMES.has(word);
    });
  assert.deepEqual(
    faults.map(({ place, text }) => `${place}: ${text}`),
    [],
  );
});

test('a hint with a command or an option that does not exist is found', () => {
  const unknownIn = (source: string): readonly string[] =>
    collectHints('a.ts', source).flatMap((hint) => findUnknown(hint, programs));
  assert.deepEqual(unknownIn("f({ hint: 'give --bogus' })"), ['--bogus']);
  assert.deepEqual(unknownIn('f({ hint: `gnt-instance modify --enable-safe-install yes ${a}` })'), [
    'gnt-instance modify --enable-safe-install',
  ]);
  assert.deepEqual(unknownIn("f({ hint: x ? 'gnt-node evict-all NODE' : 'b' })"), [
    'gnt-node evict-all',
  ]);
  assert.deepEqual(unknownIn("print('run gnt-cluster modify --wrong yes')"), [
    'gnt-cluster modify --wrong',
  ]);
  assert.deepEqual(unknownIn("f({ hint: 'gnt-instance launch -s 10G debian/12 web1' })"), []);
});
