import type { OpcodeInput } from '#shared/contract/opcode.ts';
import type { Context } from '../../terminal/context.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

/** `gnt-instance move [-n NODE] NAME`. @throws AppError, CommandFailure */
export async function runMove(
  context: Context,
  name: string,
  options: SubmitOptions & { readonly node?: string },
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'INSTANCE_MOVE', name, node: options.node };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`instance ${name} is moved`);
}

/** `gnt-instance failover [-f] [-n NODE] NAME`. @throws AppError, CommandFailure */
export async function runFailover(
  context: Context,
  name: string,
  options: ForceOptions & { readonly node?: string },
): Promise<void> {
  await confirmLoss(
    context,
    `This starts ${name} on another node. What its guest had not written is lost.`,
    options,
  );
  const opcode: OpcodeInput = { opcode: 'INSTANCE_FAILOVER', name, node: options.node };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`instance ${name} is failed over`);
}

/** `gnt-instance migrate [-n NODE] NAME`. @throws AppError, CommandFailure */
export async function runMigrate(
  context: Context,
  name: string,
  options: SubmitOptions & { readonly node?: string; readonly timeout?: number },
): Promise<void> {
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_MIGRATE', name, node: options.node },
    ...(options.timeout !== undefined && { timeoutS: options.timeout }),
  };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`instance ${name} is migrated`);
}
