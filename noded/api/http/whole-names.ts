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
 * Expands an abbreviated instance name in an operation from the node's own socket. Remote users
 * have rights by full names, so their names are not expanded. An unknown name stays as it is and is
 * refused later.
 * @throws AppError VALIDATION: the name is ambiguous; INSTANCE_NOT_FOUND: an operation that removes
 * disks needs the full name
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
  // If repeated, `web1` could match the intended instance first and another one afterwards.
  if (traits.removesDisks?.(opcode) !== true) return { ...opcode, name };
  throw new AppError('INSTANCE_NOT_FOUND', `there is no instance '${typed}'`, {
    details: { name: typed },
    hint: `Commands that remove disks need the full name: ${name}`,
  });
}
