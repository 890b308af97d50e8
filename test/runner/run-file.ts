import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { run } from 'node:test';
import { spec, type TestEvent } from 'node:test/reporters';

/** One test as it ended; suites are not counted. */
export interface TestResult {
  readonly name: string;
  readonly durationMs: number;
  readonly outcome: 'passed' | 'failed' | 'skipped';
}

export interface FileResult {
  readonly file: string;
  readonly durationMs: number;
  readonly tests: readonly TestResult[];
  /** The whole output, as node prints it, of a file that failed; empty for one that passed. */
  readonly report: string;
}

/**
 * A file that takes longer hangs, and is ended: the slowest takes a quarter of it on a machine that
 * does nothing else. Node's own limit ends a test, not a process in which all tests have ended.
 */
const FILE_TIMEOUT_MS = 40 * 60_000;
/**
 * For what is cleaned up when the last test has ended. A process that is still there then has left
 * something open, as tests do that fail before they close it.
 */
const LINGER_MS = 60_000;

export interface FileOptions {
  readonly timeoutMs?: number;
  readonly lingerMs?: number;
  /** What the file finds behind its own name in `process.argv`. */
  readonly args?: readonly string[];
}

const DEFAULTS = { timeoutMs: FILE_TIMEOUT_MS, lingerMs: LINGER_MS, args: [] };

/**
 * Runs one test file in a process of its own.
 * @returns what became of its tests; a file that crashes, hangs or has no test counts as one failed
 * test with the file's name
 */
export async function runFile(
  projectDir: string,
  file: string,
  signal: AbortSignal,
  options: FileOptions = {},
): Promise<FileResult> {
  const { timeoutMs, lingerMs, args } = { ...DEFAULTS, ...options };
  const startedAtMs = performance.now();
  const hanging = AbortSignal.timeout(timeoutMs);
  using lingering = createLingerWatch(lingerMs);
  const events: TestEvent[] = [];
  const tests: TestResult[] = [];
  const ending = AbortSignal.any([signal, hanging, lingering.signal]);
  const stream = run({ files: [file], argv: [...args], cwd: projectDir, signal: ending });
  for await (const event of stream as AsyncIterable<TestEvent>) {
    events.push(event);
    lingering.see(event);
    const result = resultOf(event);
    // A file without tests is reported as a test that passed, under the file's name.
    const isFileItself =
      result?.outcome === 'passed' &&
      resolve(projectDir, result.name) === resolve(projectDir, file);
    if (result !== undefined && !isFileItself) tests.push(result);
  }
  const unended = unendedOf(events);
  for (const name of unended) tests.push({ name, durationMs: 0, outcome: 'failed' });
  const durationMs = performance.now() - startedAtMs;
  if (hanging.aborted || lingering.signal.aborted) {
    tests.push({ name: file, durationMs, outcome: 'failed' });
    const told = hanging.aborted
      ? `${file} was ended after ${timeoutMs / 1000} s\n`
      : `${file} was left hanging: ended ${lingerMs / 1000} s after its last test, something is still open\n`;
    return { file, durationMs, tests, report: (await formatEvents(events)) + told };
  }
  if (tests.length === 0) {
    tests.push({ name: file, durationMs, outcome: 'failed' });
    return { file, durationMs, tests, report: `no test ran in ${file}\n` };
  }
  const hasFailed = tests.some(({ outcome }) => outcome === 'failed');
  if (!hasFailed) return { file, durationMs, tests, report: '' };
  const told = unended.map((name) => `${name} has no result: the process of ${file} ended first\n`);
  return { file, durationMs, tests, report: (await formatEvents(events)) + told.join('') };
}

/**
 * Of a file whose process ended before its tests did, as by `process.exit(0)`: those that were
 * queued and have no result, else the file itself, whose further tests nobody knows. A process that
 * ends by itself tells a summary.
 */
function unendedOf(events: readonly TestEvent[]): readonly string[] {
  if (events.some(({ type, data }) => type === 'test:summary' && data.file !== undefined))
    return [];
  const open: string[] = [];
  for (const { type, data } of events) {
    if (type === 'test:enqueue' && data.type === 'test') open.push(data.name);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const at = open.indexOf(data.name);
    if (at !== -1) open.splice(at, 1);
  }
  return open;
}

interface LingerWatch extends Disposable {
  /** Aborted when all tests of the file ended so long ago. */
  readonly signal: AbortSignal;
  see(event: TestEvent): void;
}

/**
 * The file is a test, too: the first to be queued, and the last to end. A file that writes to its
 * stdout can hold its own events back until it ends (node takes text right behind an event for the
 * next one's header): left hanging, it lasts as long as its limit.
 */
function createLingerWatch(lingerMs: number): LingerWatch {
  const controller = new AbortController();
  let open = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    signal: controller.signal,
    see: ({ type, data }) => {
      if ((type !== 'test:enqueue' && type !== 'test:complete') || data.nesting > 0) return;
      open += type === 'test:enqueue' ? 1 : -1;
      clearTimeout(timer);
      if (type === 'test:complete' && open === 1)
        timer = setTimeout(() => controller.abort(), lingerMs);
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}

function resultOf(event: TestEvent): TestResult | undefined {
  if (event.type !== 'test:pass' && event.type !== 'test:fail') return undefined;
  const { name, details, skip, todo } = event.data;
  if (details.type === 'suite' && event.type === 'test:pass') return undefined;
  const isLeftOut = skip !== undefined || todo !== undefined;
  const outcome = isLeftOut ? 'skipped' : event.type === 'test:pass' ? 'passed' : 'failed';
  return { name, durationMs: details.duration_ms, outcome };
}

async function formatEvents(events: readonly TestEvent[]): Promise<string> {
  const chunks = await Readable.from(events).compose(new spec()).toArray();
  return chunks.map(String).join('');
}
