import { setTimeout as sleep } from 'node:timers/promises';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import type { JobHandler } from '../jobs/job-handler.ts';

export function testDelayHandler(): JobHandler<OpcodeOf<'TEST_DELAY'>> {
  return {
    prepare: ({ durationS }) =>
      Promise.resolve(({ signal }) => sleep(durationS * 1000, null, { signal })),
  };
}
