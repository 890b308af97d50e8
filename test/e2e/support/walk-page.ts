import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findDifference, readTour, type TourStep } from './read-tour.ts';
import type { Shell } from './shell.ts';

const projectDir = join(import.meta.dirname, '../../..');

/** @param page path below the checkout */
export async function readPage(page: string): Promise<readonly TourStep[]> {
  return readTour(await readFile(join(projectDir, page), 'utf8'));
}

export interface WalkOptions {
  /** Replaces names in commands and outputs, such as the root of a tour. */
  readonly here?: (text: string) => string;
  /** Reports the running command to a reader of the test. */
  readonly tell?: (command: string) => void;
}

/**
 * Runs each command of a page, and compares its exit status and output with the page. A command
 * whose shown output has an `error[…]` must fail, any other must succeed.
 * @param shellOf returns the shell of a host
 */
export async function walkPage(
  steps: readonly TourStep[],
  shellOf: (host: string) => Shell,
  { here = (text) => text, tell = () => undefined }: WalkOptions = {},
): Promise<void> {
  for (const { host, command, expected } of steps) {
    tell(command);
    const { status, lines } = await shellOf(host).run(here(command));
    const printed = `${host}# ${command}\n${lines.join('\n')}`;
    const isRefusal = expected.some((line) => line.startsWith('error['));
    assert.equal(status === 0, !isRefusal, printed);
    const difference = findDifference(expected.map(here), lines);
    assert.equal(difference, undefined, `${printed}\nnot as shown: ${difference}`);
  }
}
