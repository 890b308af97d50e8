import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Entry, OwnLease } from './node-lease.ts';

/** Enters the lease before a machine is created; null for disks that no other node writes to. */
export type EnterShared = (
  instance: Pick<InstanceRecord, 'uuid' | 'name' | 'diskTemplate'>,
  /** `moving`: its guest still runs on another node, which is handing it over. */
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
      // The record may be outdated: another node may have taken the instance.
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
