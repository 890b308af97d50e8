import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstanceDisks } from '../instance-disks.ts';
import { beginSnapshot, type SnapshotDisks, StandsStill, whileStill } from '../snapshot-disks.ts';
import type { OwnVolumes } from './own-volumes.ts';
import type { OwnVolume } from './volume-names.ts';
import type { VolumeSystem } from './volume-system.ts';

/**
 * Snapshots of thin volumes are thin volumes of the same pool. That a guest stands still for one is
 * told by a folder, as for files.
 * @param files snapshots of disks of all other templates
 */
export function withVolumeSnapshots(
  files: SnapshotDisks,
  { system, volumes }: { readonly system: VolumeSystem; readonly volumes: OwnVolumes },
  {
    disksDir,
    disks,
  }: {
    readonly disksDir: string;
    readonly disks: Pick<InstanceDisks, 'settle' | 'activate' | 'checkSizes' | 'checkSpace'>;
  },
): SnapshotDisks {
  const isOurs = ({ diskTemplate }: Pick<InstanceRecord, 'diskTemplate'>): boolean =>
    diskTemplate === system.template;
  const listDisks = async (instance: InstanceRecord): Promise<readonly OwnVolume[]> => {
    const all = (await volumes.list(instance)).filter(({ state }) => state.kind === 'disk');
    return instance.disks.map(({ uuid }, index) => {
      const found = all.find(({ disk }) => disk === uuid);
      if (found !== undefined) return found;
      throw new AppError('DISK_MISSING', `disk ${index} of '${instance.name}' has no volume`);
    });
  };
  const listOf = async (
    instance: Pick<InstanceRecord, 'uuid'>,
    snapshot: string,
  ): Promise<readonly OwnVolume[]> =>
    (await volumes.list(instance)).filter(
      ({ state }) => state.kind === 'snapshot' && state.snapshot === snapshot,
    );
  const removeAll = async (all: readonly OwnVolume[]): Promise<void> => {
    for (const volume of all) await volumes.remove(volume);
  };
  return {
    check: async (instance, mayCopy) => {
      if (!isOurs(instance)) return files.check(instance, mayCopy);
      refuseThick(instance, system);
      await disks.settle(instance);
      await disks.activate(instance);
      // Whether the pool has room, by asking for more than there is.
      const more = instance.disks.map((disk) => ({ ...disk, uuid: '' }));
      await disks.checkSizes(more, instance);
    },
    take: async (instance, uuid, how) => {
      if (!isOurs(instance)) return files.take(instance, uuid, how);
      const own = await listDisks(instance);
      await using held = new AsyncDisposableStack();
      if (how.machine === undefined) held.use(await volumes.hold(own));
      const unfinished = await beginSnapshot(join(disksDir, instance.uuid), uuid);
      const settle = (isKept: boolean): Promise<unknown> =>
        volumes.settle(instance, {
          disks: instance.disks,
          snapshots: [...instance.snapshots, ...(isKept ? [{ uuid }] : [])],
          ...{ currentIds: [], isDecided: false },
        });
      let stillMs: number;
      try {
        const state = { kind: 'snapshotting', snapshot: uuid } as const;
        stillMs = await whileStill(how.machine, async () => {
          for (const volume of own) await volumes.clone(volume, { state, isActive: false });
        });
        await rm(unfinished, { recursive: true });
      } catch (error) {
        // One that could not be told to go on is told by the next daemon, and settled then.
        if (error instanceof StandsStill) throw error;
        await rm(unfinished, { recursive: true, force: true });
        // What cannot be removed now is removed by settling; what went wrong first is told.
        await settle(false).catch(() => undefined);
        throw error;
      }
      await how.commit();
      await settle(true);
      return { stillMs };
    },
    checkRestore: async (instance, snapshot) => {
      if (isOurs(instance)) await disks.checkSpace(instance);
      else await files.checkRestore(instance, snapshot);
    },
    restore: async (instance, snapshot, how) => {
      if (!isOurs(instance)) return files.restore(instance, snapshot, how);
      const { restoreId, commit } = how;
      const from = await listOf(instance, snapshot.uuid);
      for (const [index, { uuid }] of snapshot.disks.entries())
        if (!from.some(({ disk }) => disk === uuid))
          throw system.errors.noSnapshot(snapshot.name, index);
      {
        await using held = await volumes.hold(await listDisks(instance));
        void held;
        const state = { kind: 'next', installation: restoreId } as const;
        try {
          for (const volume of from) await volumes.clone(volume, { state, isActive: true });
        } catch (error) {
          await disks.settle(instance).catch(() => undefined);
          throw error;
        }
      }
      await commit();
      const { snapshots } = instance;
      await volumes.settle(instance, {
        ...{ disks: snapshot.disks, snapshots, currentIds: [restoreId], isDecided: true },
      });
    },
    remove: async (instance, uuid, commit) => {
      if (!isOurs(instance)) return files.remove(instance, uuid, commit);
      const going: OwnVolume[] = [];
      for (const volume of await listOf(instance, uuid))
        going.push(await volumes.rename(volume, { kind: 'snapshotting', snapshot: uuid }));
      await commit();
      await removeAll(going);
    },
    listForgotten: async (instance) => {
      if (!isOurs(instance)) return files.listForgotten(instance);
      const { snapshots } = instance;
      return (await volumes.list(instance)).flatMap(({ state, group, name }) =>
        state.kind === 'snapshot' && snapshots.every(({ uuid }) => uuid !== state.snapshot)
          ? [`${group}/${name}`]
          : [],
      );
    },
    isUnfinished: (uuid) => files.isUnfinished(uuid),
  };
}

/** LVM makes those too slow for a guest, and too small for what it writes. */
function refuseThick({ name, disks }: InstanceRecord, system: VolumeSystem): void {
  const thick = disks.flatMap((disk, index) =>
    system.placeOf(disk).pool === undefined ? [index] : [],
  );
  if (thick.length === 0) return;
  throw new AppError(
    'NOT_SUPPORTED',
    `disk ${thick.join(', ')} of '${name}' is not a thin LVM volume and cannot have snapshots`,
    {
      details: { name, disks: thick },
      hint: `Make new disks thin with gnt-cluster modify --vg-name GROUP/POOL. Save these with gnt-backup export ${name}`,
    },
  );
}
