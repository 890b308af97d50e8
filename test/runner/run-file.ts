import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { run } from 'node:test';
import { spec, type TestEvent } from 'node:test/reporters';

/** One finished test; suites are not counted. */
export interface TestResult {
  readonly name: string;
  readonly durationMs: number;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Message of a failure, cut. */
  readonly error?: string;
}

export interface FileResult {
  readonly file: string;
  readonly durationMs: number;
  readonly tests: readonly TestResult[];
  /** Node's whole output of a failed file; empty for a passed file. */
  readonly report: string;
}

/**
 * Limit for a file. On an idle machine the slowest file needs a quarter of it. Node's own limit
 * ends a test, but not a process whose tests have ended.
 */
const FILE_TIMEOUT_MS = 40 * 60_000;
/**
 * Time for clean-up after the last test. Failed tests often leave handles open, which keep the
 * process alive.
 */
const LINGER_MS = 60_000;
const MAX_ERROR_CHARACTERS = 600;

export interface FileOptions {
  readonly timeoutMs?: number;
  readonly lingerMs?: number;
  /** `process.argv` after the file's name. */
  readonly args?: readonly string[];
}

const DEFAULTS = { timeoutMs: FILE_TIMEOUT_MS, lingerMs: LINGER_MS, args: [] };

/**
 * Runs one test file in its own process.
 * @returns the results; a file that crashes, hangs or has no test counts as one failed test with
 * the file's name
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
    // Node reports a file without tests as a passed test with the file's name.
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
 * Returns the queued tests without a result when the process ended early, as by `process.exit(0)`.
 * The file itself is queued too, for its unknown further tests. A process that ends normally
 * reports a summary.
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
  /** Aborts `lingerMs` after the last test of the file. */
  readonly signal: AbortSignal;
  see(event: TestEvent): void;
}

/**
 * Watches for the end of the last test. The file counts as a test too: queued first, and ended
 * last. A file that writes to stdout may hold back its own events, because node takes text right
 * after an event for the header of the next one. Such a hanging file runs until its limit.
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
  const durationMs = details.duration_ms;
  if (isLeftOut) return { name, durationMs, outcome: 'skipped' };
  if (event.type === 'test:pass') return { name, durationMs, outcome: 'passed' };
  return { name, durationMs, outcome: 'failed', error: messageOf(event.data.details.error) };
}

/** Returns the message of the error that the test threw; node wraps it. */
function messageOf({ message, cause }: Error): string {
  return (cause instanceof Error ? cause.message : message).slice(0, MAX_ERROR_CHARACTERS);
}

async function formatEvents(events: readonly TestEvent[]): Promise<string> {
  const chunks = await Readable.from(events).compose(new spec()).toArray();
  return chunks.map(String).join('');
}
