import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

export async function runMove(
  context: Context,
  name: string,
  options: SubmitOptions & { readonly node?: string },
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'INSTANCE_MOVE', name, node: options.node };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`instance ${name} moved`);
}

export async function runFailover(
  context: Context,
  name: string,
  options: ForceOptions & { readonly node?: string },
): Promise<void> {
  await confirmLoss(
    context,
    `This starts ${name} on another node. Data that the guest has not written to disk is lost.`,
    options,
  );
  const opcode: OpcodeInput = { opcode: 'INSTANCE_FAILOVER', name, node: options.node };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`instance ${name} failed over`);
}

export type MigrateOptions = SubmitOptions & {
  readonly node?: string;
  readonly timeout?: number;
  readonly cleanup?: true;
};

export async function runMigrate(
  context: Context,
  name: string,
  options: MigrateOptions,
): Promise<void> {
  if (options.cleanup === true && (options.node ?? options.timeout) !== undefined) {
    throw new AppError('VALIDATION', '--cleanup excludes --node and --timeout', {
      hint: `gnt-instance migrate --cleanup ${name}, then migrate again`,
    });
  }
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_MIGRATE', name, node: options.node },
    ...(options.timeout !== undefined && { timeoutS: options.timeout }),
    ...(options.cleanup === true && { cleanup: true }),
  };
  const job = await submitAndWatch(context, opcode, options);
  if (job === null || options.json) return;
  context.note(`instance ${name} ${options.cleanup === true ? 'cleaned up' : 'migrated'}`);
}
