import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

/** @throws AppError USAGE, and as `submitAndWatch` */
export async function runDelay(
  context: Context,
  seconds: string,
  options: SubmitOptions,
): Promise<void> {
  if (!/^\d{1,6}(\.\d{1,3})?$/.test(seconds))
    throw new AppError('USAGE', `'${seconds}' is not a number of seconds`, {
      hint: 'gnt-debug delay 0.5',
    });
  const opcode = { opcode: 'TEST_DELAY', durationS: Number(seconds) } as const;
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`job ${job.id} waited ${seconds} s`);
}
