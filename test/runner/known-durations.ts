import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { FileResult } from './run-file.ts';

const schema = z.record(z.string(), z.number());

/** Durations of the last run of each test file on this machine. */
export interface KnownDurations {
  /** Files without a known duration come first, in their given order. */
  slowestFirst(files: readonly string[]): readonly string[];
  /** Ignores failed files: they may have ended early, or hung. */
  keep(results: readonly Pick<FileResult, 'file' | 'durationMs' | 'report'>[]): Promise<void>;
}

/** Typical durations of the slowest files, for a machine that has not run them yet. */
const USUAL = join(import.meta.dirname, 'usual-durations.json');

/** @param directory outside the checkout, so that new checkouts share it */
export async function openDurations(directory: string): Promise<KnownDurations> {
  const path = join(directory, 'test-durations.json');
  const known = new Map(Object.entries({ ...(await read(USUAL)), ...(await read(path)) }));
  return {
    slowestFirst: (files) =>
      files.toSorted((a, b) => {
        const [one, other] = [known.get(a) ?? Infinity, known.get(b) ?? Infinity];
        return one === other ? 0 : other - one;
      }),
    keep: async (results) => {
      for (const { file, durationMs, report } of results)
        if (report === '') known.set(file, Math.round(durationMs));
      await mkdir(directory, { recursive: true });
      await writeFile(`${path}.${process.pid}`, `${JSON.stringify(Object.fromEntries(known))}\n`);
      await rename(`${path}.${process.pid}`, path);
    },
  };
}

/** Returns nothing for an unreadable file: durations only affect the order. */
async function read(path: string): Promise<z.infer<typeof schema>> {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return {};
  }
}
