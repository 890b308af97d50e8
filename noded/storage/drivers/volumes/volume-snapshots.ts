import { rm } from 'node:fs/promises';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { DiskDriver } from '../../disk-driver.ts';
import type { InstanceFolders } from '../../instance-folders.ts';
import {
  beginSnapshot,
  type SnapshotVerbs,
  StandsStill,
  whileStill,
} from '../../snapshot-disks.ts';
import type { OwnVolumes } from './own-volumes.ts';
import type { OwnVolume } from './volume-names.ts';
import type { VolumeSystem } from './volume-system.ts';

/**
 * Makes snapshots of thin volumes as thin volumes of the same pool. A folder marks a paused guest,
 * as for files.
 */
export function createVolumeSnapshots(
  { system, volumes }: { readonly system: VolumeSystem; readonly volumes: OwnVolumes },
  folders: InstanceFolders,
  { settle, requireDisks, checkSizes }: Pick<DiskDriver, 'settle' | 'requireDisks' | 'checkSizes'>,
): SnapshotVerbs {
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
    check: async (instance) => {
      refuseThick(instance, system);
      await settle(instance);
      await requireDisks(instance);
      // The pool must have room for more disks, so these must not look like the present ones.
      const more = instance.disks.map((disk) => ({ ...disk, uuid: '' }));
      await checkSizes(more, instance);
    },
    take: async (instance, uuid, how) => {
      const own = await listDisks(instance);
      await using held = new AsyncDisposableStack();
      if (how.machine === undefined) held.use(await volumes.hold(own));
      const unfinished = await beginSnapshot(folders.dirOf(instance), uuid);
      const settleVolumes = (isKept: boolean): Promise<unknown> =>
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
        // The guest may still be paused. The next daemon resumes it and settles the snapshot.
        if (error instanceof StandsStill) throw error;
        await rm(unfinished, { recursive: true, force: true });
        // Settling runs again later if this fails; the first error matters.
        await settleVolumes(false).catch(() => undefined);
        throw error;
      }
      await how.commit();
      await settleVolumes(true);
      return { stillMs };
    },
    checkRestore: (instance) => folders.checkSpace(instance),
    restore: async (instance, snapshot, how) => {
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
          await settle(instance).catch(() => undefined);
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
      const going: OwnVolume[] = [];
      for (const volume of await listOf(instance, uuid))
        going.push(await volumes.rename(volume, { kind: 'snapshotting', snapshot: uuid }));
      await commit();
      await removeAll(going);
    },
    listForgotten: async (instance) => {
      const { snapshots } = instance;
      return (await volumes.list(instance)).flatMap(({ state, group, name }) =>
        state.kind === 'snapshot' && snapshots.every(({ uuid }) => uuid !== state.snapshot)
          ? [`${group}/${name}`]
          : [],
      );
    },
  };
}

/** LVM's thick snapshots are too slow for a guest and hold too few of its writes. */
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
