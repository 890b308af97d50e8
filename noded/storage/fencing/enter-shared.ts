import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Entry, OwnLease } from './node-lease.ts';

/** Before a machine is made: null where nobody else ever writes its disks. */
export type EnterShared = (
  instance: Pick<InstanceRecord, 'uuid' | 'name' | 'diskTemplate'>,
  /** `moving`: its guest still runs on another node, which gives it away. */
  kind: 'run' | 'appliance' | 'moving',
) => Promise<Entry | null>;

export function createEnterShared(dependencies: {
  readonly lease: Pick<OwnLease, 'enter'>;
  readonly instances: { findByUuid(uuid: string): Promise<InstanceRecord | undefined> };
  readonly owns: (node: string) => boolean;
}): EnterShared {
  const { lease, instances, owns } = dependencies;
  return async ({ uuid, name, diskTemplate }, kind) => {
    if (diskTemplate !== 'sharedfile') return null;
    const entry = await lease.enter(uuid);
    try {
      // Whatever was read before may have been true until another node took the instance.
      const record = await instances.findByUuid(uuid);
      if (kind === 'moving' || (record !== undefined && owns(record.primaryNode))) return entry;
      throw new AppError('CONFLICT', `'${name}' is no longer on this node`, {
        details: { name, node: record?.primaryNode ?? null },
        hint: `Another node took it over: gnt-instance info ${name}`,
      });
    } catch (error) {
      entry[Symbol.dispose]();
      throw error;
    }
  };
}
