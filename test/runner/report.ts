import type { FileResult, TestResult } from './run-file.ts';

const SLOWEST_SHOWN = 10;

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`.padStart(8);

/** Formats a line for a file, followed by the whole output if it failed. */
export function formatFile({ file, tests, durationMs, report }: FileResult): string {
  const count = (outcome: string): number =>
    tests.filter((test) => test.outcome === outcome).length;
  const words = [
    `${count('passed')} passed`,
    ...(count('failed') > 0 ? [`${count('failed')} FAILED`] : []),
    ...(count('skipped') > 0 ? [`${count('skipped')} skipped`] : []),
  ];
  return `${seconds(durationMs)}  ${file}: ${words.join(', ')}\n${report}`;
}

/**
 * Formats the summary; the last line is `N passed, N failed`.
 * @param leftOut number of files that did not start, because the run was aborted
 */
export function formatSummary(results: readonly FileResult[], leftOut: number): string {
  const all = results.flatMap(({ file, tests }) => tests.map((test) => ({ ...test, file })));
  const of = (outcome: string): typeof all => all.filter((test) => test.outcome === outcome);
  const slowest = all.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SLOWEST_SHOWN);
  const named = (heading: string, tests: typeof all): string[] =>
    tests.length === 0 ? [] : ['', heading, ...tests.flatMap(nameOf)];
  return [
    '',
    `the slowest ${slowest.length} tests:`,
    ...slowest.map(({ file, name, durationMs }) => `${seconds(durationMs)}  ${file}: ${name}`),
    ...named('skipped:', of('skipped')),
    ...named('failed:', of('failed')),
    '',
    ...(leftOut > 0 ? [`${leftOut} files did not run`] : []),
    `${of('passed').length} passed, ${of('failed').length} failed`,
    '',
  ].join('\n');
}

/** Returns the lines that name a test, with its error: a log is often cut before the summary. */
function nameOf({ file, name, error }: TestResult & { readonly file: string }): string[] {
  const lines = error === undefined ? [] : error.split('\n').filter((line) => line.trim() !== '');
  return [`  ${file}: ${name}`, ...lines.map((line) => `      ${line}`)];
}

/** Tells whether the run passed. A run without tests has not. */
export function hasPassed(results: readonly FileResult[], leftOut: number): boolean {
  const outcomes = results.flatMap(({ tests }) => tests.map(({ outcome }) => outcome));
  return leftOut === 0 && outcomes.includes('passed') && !outcomes.includes('failed');
}
