import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { parseDataRate } from '../../values/size.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

export type MoveOptions = SubmitOptions & { readonly node?: string; readonly dataRate?: string };

export async function runMove(context: Context, name: string, options: MoveOptions): Promise<void> {
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_MOVE', name, node: options.node },
    ...(options.dataRate !== undefined && { dataRate: parseDataRate(options.dataRate) }),
  };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`instance ${name} moved`);
}

interface TargetOptions {
  readonly node?: string;
  /** Ganeti's name of the same option. */
  readonly targetNode?: string;
}

function targetOf({ node, targetNode }: TargetOptions): string | undefined {
  if (node !== undefined && targetNode !== undefined)
    throw new AppError('USAGE', '--node and --target-node are the same option', {
      hint: 'Name the target node once',
    });
  return node ?? targetNode;
}

export type FailoverOptions = ForceOptions & TargetOptions;

export async function runFailover(
  context: Context,
  name: string,
  options: FailoverOptions,
): Promise<void> {
  const node = targetOf(options);
  await confirmLoss(
    context,
    `This starts ${name} on another node. Data that the guest has not written to disk is lost.`,
    options,
  );
  const opcode: OpcodeInput = { opcode: 'INSTANCE_FAILOVER', name, node };
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(`instance ${name} failed over`);
}

export type MigrateOptions = SubmitOptions &
  TargetOptions & {
    readonly timeout?: number;
    readonly dataRate?: string;
    readonly cleanup?: true;
  };

export async function runMigrate(
  context: Context,
  name: string,
  options: MigrateOptions,
): Promise<void> {
  const node = targetOf(options);
  if (options.cleanup === true && (node ?? options.timeout ?? options.dataRate) !== undefined) {
    throw new AppError('VALIDATION', '--cleanup excludes --node, --timeout and --data-rate', {
      hint: `gnt-instance migrate --cleanup ${name}, then migrate again`,
    });
  }
  const opcode: OpcodeInput = {
    ...{ opcode: 'INSTANCE_MIGRATE', name, node },
    ...(options.timeout !== undefined && { timeoutS: options.timeout }),
    ...(options.dataRate !== undefined && { dataRate: parseDataRate(options.dataRate) }),
    ...(options.cleanup === true && { cleanup: true }),
  };
  const job = await submitAndWatch(context, opcode, options);
  if (job === null || options.json) return;
  context.note(`instance ${name} ${options.cleanup === true ? 'cleaned up' : 'migrated'}`);
}
