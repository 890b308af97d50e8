import type { Opcode } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import { namesInstance, traitsOf } from '../../jobs/opcode-traits.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';

export interface WholeNamesDependencies {
  readonly instances: Pick<InstanceRepository, 'expandName'>;
  readonly overview: Pick<Overview, 'orphans'>;
}

/**
 * An operation as an operator of this host wrote it, who may have given the beginning of a name.
 * For nobody else: users of the remote API have rights by whole names. What nobody has is left, and
 * refused by whoever looks for it.
 * @throws AppError VALIDATION: several instances may be meant; INSTANCE_NOT_FOUND: what takes disks
 * away was asked for by less than the whole name
 */
export async function withWholeName(
  opcode: Opcode,
  { instances, overview }: WholeNamesDependencies,
): Promise<Opcode> {
  const traits = traitsOf(opcode);
  if (!namesInstance(opcode) || traits.names !== 'instance') return opcode;
  const { name: typed } = opcode;
  const name = await instances.expandName(typed).catch((error: unknown) => {
    if (isAppError(error, 'INSTANCE_NOT_FOUND')) return typed;
    throw error;
  });
  if (name === typed) return opcode;
  const isOrphans =
    traits.orphan !== undefined &&
    (await overview.orphans()).some((orphan) => orphan.name === typed);
  if (isOrphans) return opcode;
  // Given twice, `web1` could mean the instance of that name first, and then another one.
  if (traits.removesDisks?.(opcode) !== true) return { ...opcode, name };
  throw new AppError('INSTANCE_NOT_FOUND', `there is no instance '${typed}'`, {
    details: { name: typed },
    hint: `Commands that remove disks need the full name: ${name}`,
  });
}
