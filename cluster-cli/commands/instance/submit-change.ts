import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { CommandFailure } from '../../failures/failure.ts';
import type { Context } from '../../terminal/context.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { waitReady, type WaitReadyOptions } from './wait-ready.ts';

/** Submits a change of an instance and prints a line when it is done. */
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
 * Resolves an abbreviated name for the question. Removal of disks without a question needs the
 * whole name, because an abbreviation may match another instance next time.
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
    // It may be an orphan.
    if (error instanceof CommandFailure && error.code === 'INSTANCE_NOT_FOUND') return typed;
    throw error;
  }
}
