import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { FileResult } from './run-file.ts';

const NAME = 'npm run check';

/** Runs `npm run check` and reports it as one test file. */
export async function runCheck(projectDir: string, signal: AbortSignal): Promise<FileResult> {
  const startedAtMs = performance.now();
  const child = spawn('sh', ['-c', 'exec npm run --silent check 2>&1'], {
    cwd: projectDir,
    stdio: ['ignore', 'pipe', 'inherit'],
    signal,
  });
  const [output, status] = await Promise.all([
    text(child.stdout),
    once(child, 'close').then(
      ([code]: (number | null)[]) => code,
      () => null,
    ),
  ]);
  const durationMs = performance.now() - startedAtMs;
  const outcome = status === 0 ? 'passed' : 'failed';
  return {
    file: NAME,
    durationMs,
    tests: [{ name: NAME, durationMs, outcome }],
    report: outcome === 'failed' ? output : '',
  };
}
