import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';

/**
 * Releases young objects, old objects and memory of the C library. Prints the resident memory with
 * them, after them, and after the release.
 */
const program = `
  import { releaseMemory } from ${JSON.stringify(import.meta.resolve('#shared/sys/release-memory.ts'))};
  const resident = () => Math.round(process.memoryUsage.rss() / 2 ** 20);
  const before = resident();
  let held = Array.from({ length: 400_000 }, (_, at) => ({ at, text: 'text ' + at }));
  let buffers = Array.from({ length: 20_000 }, () => Buffer.allocUnsafeSlow(3000).fill(1));
  const full = resident();
  held = buffers = undefined;
  releaseMemory();
  await new Promise((done) => setTimeout(done, 100));
  releaseMemory();
  console.log(JSON.stringify({ before, full, after: resident() }));
`;

test('what is free in a process is given back to the system', async () => {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program]);
  const { before, full, after } = JSON.parse(stdout) as Record<'before' | 'full' | 'after', number>;
  assert.ok(full - before > 50, stdout);
  assert.ok(after - before < (full - before) / 4, stdout);
});
