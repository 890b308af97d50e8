import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createSeededRandom } from '../lab/seeded-random.ts';
import { isPure } from '../runner/groups.ts';
import { applyMutant, describeMutant, findMutants, type Mutant } from './mutants.ts';
import { findNearTests } from './near-tests.ts';

/** A mutant that never ends a loop counts as killed. */
const LIMIT_MS = 60_000;
const FOLDERS =
  'metad,noded/{cluster,instances,storage,netboot,operations,net,records},shared/contract,cluster-cli';

const projectDir = resolve(import.meta.dirname, '../..');
process.chdir(projectDir);
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '50' },
    folders: { type: 'string', default: FOLDERS },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'gnt-mutate-'));
process.on('exit', () => rmSync(folder, { recursive: true }));

const nearTests = findNearTests(projectDir);
const patterns = values.folders.match(/(?:[^,{]|\{[^}]*\})+/g) ?? [];
const files = patterns
  .flatMap((pattern) => globSync([`${pattern}/**/*.ts`, `${pattern}.ts`]))
  .sort();
const mutants = createSeededRandom(Number(values.seed))
  .shuffle(files.flatMap(findMutants))
  .slice(0, Number(values.count));

const unchanged = new Map<string, Promise<boolean>>();
let next = 0;
let killed = 0;
await Promise.all(Array.from({ length: availableParallelism() }, work));
const rate = Math.round((100 * killed) / mutants.length);
process.stdout.write(
  `killed ${killed} of ${mutants.length} mutants (${rate} %), seed ${values.seed}\n`,
);

async function work(): Promise<void> {
  for (let at = next++; at < mutants.length; at = next++) {
    const mutant = mutants[at] as Mutant;
    const tests = nearTests(mutant.file);
    if (await isKilled(mutant, tests, join(folder, `${at}.json`))) {
      killed += 1;
      continue;
    }
    const survived = `survived ${tests.join(' ') || 'without a test'}`;
    process.stdout.write(`${describeMutant(mutant)}\n  ${survived}\n`);
  }
}

async function isKilled(mutant: Mutant, tests: readonly string[], file: string): Promise<boolean> {
  const url = pathToFileURL(resolve(mutant.file)).href;
  writeFileSync(file, JSON.stringify({ url, source: applyMutant(mutant) }));
  const env = {
    NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, 'serve-mutant.ts')).href}`,
    GNT_MUTANT: file,
  };
  const pure = tests.filter(isPure);
  const others = tests.filter((test) => !isPure(test)).map((test) => [test]);
  for (const group of pure.length > 0 ? [pure, ...others] : others) {
    if (!(await passes(group, env)) && (await passesUnchanged(group))) return true;
  }
  return false;
}

/** Tells whether tests pass without a mutant: only then is their failure due to it. */
function passesUnchanged(tests: readonly string[]): Promise<boolean> {
  const key = tests.join(' ');
  const known = unchanged.get(key) ?? passes(tests, {});
  unchanged.set(key, known);
  return known;
}

function passes(tests: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  const runner = join(import.meta.dirname, '../runner/pure-files.ts');
  const child = spawn(process.execPath, [runner, ...tests], {
    env: { ...process.env, ...env },
    stdio: 'ignore',
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  return new Promise((done) => child.on('close', (status) => done(status === 0)));
}
