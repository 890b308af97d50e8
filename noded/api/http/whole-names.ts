import type { Opcode } from '#shared/contract/opcode.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';

export interface WholeNamesDependencies {
  readonly instances: Pick<InstanceRepository, 'expandName'>;
  readonly overview: Pick<Overview, 'orphans'>;
}

/** Operations whose name is not that of an instance, or not yet. */
const OF_NO_INSTANCE = new Set<Opcode['opcode']>([
  'INSTANCE_CREATE',
  'OS_SET_PARAMS',
  'PROFILE_SET_PARAMS',
  'PROFILE_REMOVE',
  'NETWORK_ADD',
  'NETWORK_SET_PARAMS',
  'NETWORK_CONNECT',
  'NETWORK_DISCONNECT',
  'NETWORK_REMOVE',
  'CLUSTER_SET_PARAMS',
  'NODE_SET_PARAMS',
  'BACKUP_REMOVE',
]);
/** What may be said of a machine without a record, by its own name. */
const OF_ORPHANS = new Set<Opcode['opcode']>(['INSTANCE_ADOPT', 'INSTANCE_REMOVE']);
/**
 * What takes disks away: asked for twice, `web1` would first be the instance of that name, and then
 * another one.
 */
const DESTROYING = new Set<Opcode['opcode']>(['INSTANCE_REMOVE', 'INSTANCE_REINSTALL']);

function takesDisksAway(opcode: Opcode): boolean {
  if (opcode.opcode !== 'INSTANCE_SET_PARAMS') return DESTROYING.has(opcode.opcode);
  return opcode.disks.some(({ action }) => action === 'remove');
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
  if (!('name' in opcode) || OF_NO_INSTANCE.has(opcode.opcode)) return opcode;
  const { name: typed } = opcode;
  const name = await instances.expandName(typed).catch((error: unknown) => {
    if (isAppError(error, 'INSTANCE_NOT_FOUND')) return typed;
    throw error;
  });
  if (name === typed) return opcode;
  const isOrphans =
    OF_ORPHANS.has(opcode.opcode) &&
    (await overview.orphans()).some((orphan) => orphan.name === typed);
  if (isOrphans) return opcode;
  if (!takesDisksAway(opcode)) return { ...opcode, name };
  throw new AppError('INSTANCE_NOT_FOUND', `there is no instance '${typed}'`, {
    details: { name: typed },
    hint: `Commands that remove disks need the full name: ${name}`,
  });
}
