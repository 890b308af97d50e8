import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobContext } from '../../../noded/jobs/job-handler.ts';
import { testDelayHandler } from '../../../noded/operations/test-delay.ts';

test('a delay waits as long as asked, and ends at once when it is cancelled', async () => {
  const handler = testDelayHandler();
  const { signal } = new AbortController();
  const wait = async (durationS: number, by: AbortSignal): Promise<unknown> =>
    (await handler.prepare({ opcode: 'TEST_DELAY', durationS }, signal))({
      signal: by,
    } as JobContext);
  const began = performance.now();
  await wait(0.05, signal);
  assert.ok(performance.now() - began >= 49);
  await assert.rejects(wait(86_400, AbortSignal.timeout(1)), { name: 'AbortError' });
});
