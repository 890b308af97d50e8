import { spawn } from 'node:child_process';
import { chmodSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createSeededRandom } from '../lab/seeded-random.ts';
import { isPure } from '../runner/groups.ts';
import { createCompiler } from './compiles.ts';
import { applyMutant, describeMutant, findMutants, type Mutant } from './mutants.ts';
import { createExecutedCode } from './executed-code.ts';
import { findNearTests, REFERENCE } from './near-tests.ts';

/** A mutant that never ends a loop counts as killed. */
const LIMIT_MS = 60_000;
/** Tests of a kind, pure or not, that are run for one mutant: the nearest ones. */
const MOST = 8;
/** Tests of a kind that are looked at. */
const MOST_MEASURED = 40;
const FOLDERS =
  'metad,noded/{cluster,instances,jobs,net,netboot,operations,records,storage},shared/contract,cluster-cli';

/** Most of the time of a test is its start. */
const COMPILED = { NODE_COMPILE_CACHE: 'node_modules/.cache/compiled' };

const projectDir = resolve(import.meta.dirname, '../..');
process.chdir(projectDir);
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    skip: { type: 'string', default: '0' },
    count: { type: 'string', default: '50' },
    folders: { type: 'string', default: FOLDERS },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'gnt-mutate-'));
// Programs that a test starts under another user read the mutant, too.
chmodSync(folder, 0o755);
process.on('exit', () => rmSync(folder, { recursive: true }));

const compiler = createCompiler(projectDir);
const nearTests = findNearTests(projectDir);
const executes = createExecutedCode(projectDir, (test, env) => passes([test], env));
const patterns = values.folders.match(/(?:[^,{]|\{[^}]*\})+/g) ?? [];
const files = patterns
  .flatMap((pattern) => globSync([`${pattern}/**/*.ts`, `${pattern}.ts`]))
  .sort();
const mutants = createSeededRandom(Number(values.seed))
  .shuffle(files.flatMap(findMutants))
  .slice(Number(values.skip), Number(values.skip) + Number(values.count));

const unchanged = new Map<string, Promise<boolean>>();
let next = 0;
let killed = 0;
let refused = 0;
await Promise.all(Array.from({ length: availableParallelism() }, work));
const tried = mutants.length - refused;
const rate = Math.round((100 * killed) / tried);
process.stdout.write(
  `killed ${killed} of ${tried} mutants (${rate} %), seed ${values.seed}; the compiler refused ${refused} more\n`,
);

async function work(): Promise<void> {
  for (let at = next++; at < mutants.length; at = next++) {
    const mutant = mutants[at] as Mutant;
    if (!compiler.accepts(mutant)) {
      refused += 1;
      continue;
    }
    const tests = await chooseTests(mutant);
    if (await isKilled(mutant, tests, join(folder, `${at}.json`))) {
      killed += 1;
      continue;
    }
    if (!compiler.acceptsImporters(mutant)) {
      refused += 1;
      continue;
    }
    const survived = `survived ${tests.join(' ') || 'without a test'}`;
    process.stdout.write(`${describeMutant(mutant)}\n  ${survived}\n`);
  }
}

/** Returns the nearest tests that execute the changed code, the reference documents last. */
async function chooseTests({ file, at }: Mutant): Promise<readonly string[]> {
  const near = nearTests(file);
  const chosen: string[] = [];
  for (const isOfGroup of [isPure, (test: string) => !isPure(test)]) {
    const before = chosen.length;
    for (const test of near.filter(isOfGroup).slice(0, MOST_MEASURED)) {
      if (chosen.length - before === MOST) break;
      if (await executes(test, file, at)) chosen.push(test);
    }
  }
  return near.includes(REFERENCE) && !chosen.includes(REFERENCE) ? [...chosen, REFERENCE] : chosen;
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
    env: { ...process.env, ...COMPILED, ...env },
    stdio: 'ignore',
    detached: true,
  });
  // A mutant may leave programs behind, which are in the group of their test.
  const endGroup = (): void => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // The group is empty.
    }
  };
  const late = setTimeout(endGroup, LIMIT_MS);
  return new Promise((done) =>
    child.on('exit', (status) => {
      clearTimeout(late);
      endGroup();
      done(status === 0);
    }),
  );
}
