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
 * `node test/runner/main.ts GROUP...` runs the test files of these groups, each in a process of its
 * own: what needs no machine side by side, machines one at a time beside them, long ones two at a
 * time. test/README.md says which group is what.
 */
const projectDir = join(import.meta.dirname, '../..');
/** What needs nothing runs in one process: see there. */
const PURE_FILES = 'test/runner/pure-files.ts';
const wanted = process.argv.slice(2);
const unknown = wanted.filter((word) => !groups.some((group) => group === word));
if (wanted.length === 0 || unknown.length > 0) {
  process.stderr.write(`usage: node test/runner/main.ts GROUP...\ngroups: ${groups.join(', ')}\n`);
  process.exit(2);
}

const cores = availableParallelism();
const controller = new AbortController();
/** For what tests clean up; what they have started and left may hold their output open for ever. */
const ABORT_GRACE_MS = 20_000;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    controller.abort(new Error(`ended by ${signal}`));
    setTimeout(() => process.exit(130), ABORT_GRACE_MS).unref();
  });

// Generated input is the same again with the same number: see test/lab/test-seed.ts.
process.env['GNT_TEST_SEED'] ??= String(randomInt(2 ** 31));
process.stdout.write(`GNT_TEST_SEED=${process.env['GNT_TEST_SEED']}\n`);
// Hundreds of processes run the same modules: with stripped types and compiled code kept, each
// takes a third less processor time.
process.env['NODE_COMPILE_CACHE'] ??= join(projectDir, 'node_modules/.cache/compiled');
// A run that is a test itself must not speak to its parent's runner.
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

/** Those that were slow when they ran last go first: no worker is left with one at the end. */
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
 * One lane for machines, one for the rest; who has nothing left helps the other. An emulated
 * machine is busy with about one core, and half of the rest is waiting for a program: so one more
 * works at the rest beside machines, and none at the machines beside those who do. Without machines
 * one more works than there are cores. Long ones have a lane of their own, with as many machines as
 * have a core each, two at most.
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

/** What judges a time against one of a moment before, when nothing else runs any more. */
function lanesAlone(): readonly Lane<FileResult>[] {
  return [{ jobs: jobsOf('alone'), workers: 1 }];
}
