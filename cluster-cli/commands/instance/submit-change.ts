import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { CommandFailure } from '../../failures/failure.ts';
import type { Context } from '../../terminal/context.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { waitReady, type WaitReadyOptions } from './wait-ready.ts';

/** Submits what changes an instance, and says when it is done. @throws AppError, CommandFailure */
export async function submitChange(
  context: Context,
  opcode: OpcodeInput,
  options: SubmitOptions & WaitReadyOptions,
  done: string,
): Promise<void> {
  const job = await submitAndWatch(context, opcode, options);
  if (job === null) return;
  if (!options.json) context.note(done);
  if (options.waitReady !== undefined && 'name' in opcode)
    await waitReady(context, opcode.name, options.waitReady, options.degradedFails);
}

/**
 * The instance that is meant by what was typed, to be shown in the question. What takes disks away
 * without a question wants the whole name: the same word may mean another one the next time.
 * @throws AppError, CommandFailure
 */
export async function wholeName(
  context: Context,
  typed: string,
  options: ForceOptions,
): Promise<string> {
  if (options.force || !context.terminal.stdin.isTTY) return typed;
  try {
    return (await (await context.client()).ask('GET /v1/instances/{name}', { name: typed })).name;
  } catch (error) {
    // It may be a machine without a record.
    if (error instanceof CommandFailure && error.code === 'INSTANCE_NOT_FOUND') return typed;
    throw error;
  }
}
