import { randomInt } from 'node:crypto';
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';
import { type FileGroup, findTestFiles, groups, isPure } from './groups.ts';
import { openDurations } from './known-durations.ts';
import { formatFile, formatSummary, hasPassed } from './report.ts';
import { runCheck } from './run-check.ts';
import { type FileResult, runFile } from './run-file.ts';
import { type Lane, runLanes } from './run-lanes.ts';

/**
 * `node test/runner/main.ts GROUP...` runs the test files of these groups, each in its own process.
 * Files without QEMU run in parallel, files with QEMU one at a time beside them, long files two at
 * a time. test/README.md describes the groups.
 */
const projectDir = join(import.meta.dirname, '../..');
/** Runs all pure files in one process. */
const PURE_FILES = 'test/runner/pure-files.ts';
const wanted = process.argv.slice(2);
const unknown = wanted.filter((word) => !groups.some((group) => group === word));
if (wanted.length === 0 || unknown.length > 0) {
  process.stderr.write(`usage: node test/runner/main.ts GROUP...\ngroups: ${groups.join(', ')}\n`);
  process.exit(2);
}

const cores = availableParallelism();
const controller = new AbortController();
/** Time for the clean-up of tests. Left-over children may hold a test's output open without end. */
const ABORT_GRACE_MS = 20_000;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    controller.abort(new Error(`ended by ${signal}`));
    setTimeout(() => process.exit(130), ABORT_GRACE_MS).unref();
  });

// The seed reproduces generated input: see test/lab/test-seed.ts.
process.env['GNT_TEST_SEED'] ??= String(randomInt(2 ** 31));
process.stdout.write(`GNT_TEST_SEED=${process.env['GNT_TEST_SEED']}\n`);
// Hundreds of processes load the same modules. With the compile cache each needs a third less
// processor time.
process.env['NODE_COMPILE_CACHE'] ??= join(projectDir, 'node_modules/.cache/compiled');
// When a test starts this runner, the runner must not report to the test's own runner.
delete process.env['NODE_TEST_CONTEXT'];

const durations = await openDurations(process.env['GNT_CACHE'] ?? join(homedir(), '.cache/gnt'));
const results: FileResult[] = [];
let leftOut = 0;
for (const lanes of [lanesTogether(), lanesAlone()]) {
  leftOut += await runLanes(
    lanes,
    (result) => {
      results.push(result);
      process.stdout.write(formatFile(result));
    },
    controller.signal,
  );
}
await durations.keep(results);
process.stdout.write(formatSummary(results, leftOut));
process.exitCode = hasPassed(results, leftOut) ? 0 : 1;

/** Returns the slowest files first, so that no slow file is left for a single worker at the end. */
function jobsOf(group: FileGroup): (() => Promise<FileResult>)[] {
  if (!wanted.includes(group)) return [];
  const found = findTestFiles(projectDir)[group];
  const { signal } = controller;
  const pure = found.filter(isPure);
  const files = durations.slowestFirst(found.filter((file) => !isPure(file)));
  const together = (): Promise<FileResult> =>
    runFile(projectDir, PURE_FILES, signal, { args: pure });
  return [
    ...(pure.length > 0 ? [together] : []),
    ...files.map((file) => () => runFile(projectDir, file, signal)),
  ];
}

/**
 * Plans a lane for files with QEMU and a lane for the rest. Idle workers help the other lane. A
 * QEMU process with TCG keeps about one core busy, but half of the other tests wait for a process.
 * So there is one worker more than cores, and this extra worker never runs files with QEMU. Long
 * files have their own lane with one core each, at most two.
 */
function lanesTogether(): readonly Lane<FileResult>[] {
  const check = wanted.includes('check') ? [() => runCheck(projectDir, controller.signal)] : [];
  const machines = jobsOf('vm');
  const rest = [...check, ...jobsOf('slow'), ...jobsOf('fast')];
  const long = { jobs: jobsOf('long'), workers: Math.min(2, cores) };
  if (machines.length === 0) return [{ jobs: rest, workers: cores + 1 }, long];
  return [
    { jobs: machines, workers: 1, then: 1 },
    { jobs: rest, workers: Math.max(1, cores - 1), then: 0 },
    { jobs: [], workers: 1, then: 1 },
    long,
  ];
}

/** Plans the tests that compare durations, after all others. */
function lanesAlone(): readonly Lane<FileResult>[] {
  return [{ jobs: jobsOf('alone'), workers: 1 }];
}
