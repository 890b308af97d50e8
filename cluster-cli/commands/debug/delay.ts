import { MAX_DELAY_S } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

/** @throws AppError USAGE, and as `submitAndWatch` */
export async function runDelay(
  context: Context,
  seconds: string,
  options: SubmitOptions,
): Promise<void> {
  const isNumber = /^\d{1,6}(\.\d{1,3})?$/.test(seconds);
  if (isNumber && Number(seconds) > MAX_DELAY_S)
    throw new AppError('USAGE', `'${seconds}' is more than one day`, {
      hint: `gnt-debug delay ${MAX_DELAY_S}`,
    });
  if (!isNumber)
    throw new AppError('USAGE', `'${seconds}' is not a number of seconds`, {
      hint: 'gnt-debug delay 0.5',
    });
  const opcode = { opcode: 'TEST_DELAY', durationS: Number(seconds) } as const;
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`job ${job.id} waited ${seconds} s`);
}
