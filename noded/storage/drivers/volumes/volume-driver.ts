import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import type { DiskDriver, Known, VolumeVerbs } from '../../disk-driver.ts';
import { settleVariables } from '../../firmware-variables.ts';
import { holdImages } from '../../hold-images.ts';
import type { InstallDisks } from '../../install-disks.ts';
import type { InstanceFolders } from '../../instance-folders.ts';
import { settleSnapshots } from '../../snapshot-disks.ts';
import { checkGroups, type Here, refuseForeign, refuseScanned } from './check-group.ts';
import {
  createOwnVolumes,
  type OwnVolumes,
  requireAlone,
  requireRecordedSize,
} from './own-volumes.ts';
import { findPools, FULL_SHARE } from './thin-pools.ts';
import { createVolumeRoom, planRoomBeside } from './volume-room.ts';
import { findOwn, type OwnVolume, volumeName, type VolumeState } from './volume-names.ts';
import { createVolumeSnapshots } from './volume-snapshots.ts';
import type { Named, VolumeSystem } from './volume-system.ts';

type Disk = InstanceRecord['disks'][number];

export interface VolumeParts extends Here {
  readonly system: VolumeSystem;
  /** Reads where the cluster makes new disks. */
  readonly loadPlace: () => Promise<string | undefined>;
}

/** Keeps disks as volumes of LVM or ZFS. The instance's folder holds no disks. */
export function createVolumeDriver(folders: InstanceFolders, parts: VolumeParts): DiskDriver {
  const { system } = parts;
  const { errors } = system;
  const volumes = createOwnVolumes(system, parts);
  const own = { system, volumes };
  const pathOf = (disk: Disk): string => pathOfDisk(system, disk, { kind: 'disk' });
  const listDisks = async (instance: Pick<InstanceRecord, 'uuid'>): Promise<readonly OwnVolume[]> =>
    (await volumes.list(instance)).filter(({ state }) => state.kind === 'disk');
  const requireDisks: DiskDriver['requireDisks'] = async (instance) => {
    for (const [index, disk] of instance.disks.entries())
      if (!(await system.isThere(namedOf(system, disk, { kind: 'disk' }))))
        throw errors.noDevice(instance, index, pathOf(disk));
  };
  const requireVolume = async (instance: InstanceRecord, index: number): Promise<OwnVolume> => {
    await requireDisks(instance);
    const uuid = instance.disks[index]?.uuid;
    const found = (await listDisks(instance)).find(({ disk }) => disk === uuid);
    if (found === undefined) throw new Error(`disk ${index} has no volume of its instance`);
    return found;
  };
  const checkUnused: DiskDriver['checkUnused'] = async (instance) => {
    await folders.checkFilesUnused(instance);
    await (await volumes.hold(await listDisks(instance)))[Symbol.asyncDispose]();
  };
  const settle: DiskDriver['settle'] = async (instance, onZeroing) => {
    const { disks, snapshots, instanceId, restoreId, installState } = instance;
    const isDecided = installState !== 'installing';
    const record = { disks, snapshots, currentIds: [instanceId, restoreId], isDecided };
    return [
      ...(await folders.settleFolder(instance)),
      ...(await settleVariables(folders.dirOf(instance), instance)),
      ...(await settleSnapshots(folders.dirOf(instance), snapshots)),
      ...(await volumes.settle(instance, record, onZeroing)),
    ];
  };
  const checkSizes: DiskDriver['checkSizes'] = async (disks) => {
    refuseScanned(await system.isScanned(), errors);
    const placed = disks.map((disk) => ({ ...disk, ...system.placeOf(disk) }));
    const [groups, all] = [await system.listGroups(), await system.listVolumes()];
    const there = findOwn(all);
    checkGroups(placed, { groups, volumes: there, pools: findPools(all) }, errors);
    refuseForeign(new Set(placed.map(({ group }) => group)), there, parts, errors);
  };
  return {
    label: system.label,
    pathOf: (instance, index) => {
      const disk = instance.disks[index];
      if (disk === undefined) throw new Error(`'${instance.name}' has no disk ${index}`);
      return pathOf(disk);
    },
    settle,
    requireDisks,
    checkUnused,
    checkSizes,
    snapshots: createVolumeSnapshots(own, folders, { settle, requireDisks, checkSizes }),
    hold: async (instance) => {
      await requireDisks(instance);
      const disks = await listDisks(instance);
      requireRecordedSize(instance, disks);
      await using held = new AsyncDisposableStack();
      held.use(await holdImages(folders.dirOf(instance)));
      held.use(await volumes.hold(disks));
      return held.move();
    },
    checkOverwrite: async (instance) => {
      await checkUnused(instance);
      requireAlone(await listDisks(instance), errors);
    },
    roomBeside: async (instance, imageBytes) => {
      const there = await listDisks(instance);
      requireAlone(there, errors);
      const [groups, all] = [await system.listGroups(), await system.listVolumes()];
      const placed = instance.disks.map((disk) => ({ ...disk, ...system.placeOf(disk) }));
      const places = { groups, pools: findPools(all), own: there, imageBytes };
      return planRoomBeside(placed, places, errors);
    },
    openForInstall: (instance, where) => ({
      ...(where.kind === 'beside' ? besideVolumes(own, instance) : volumesInPlace(own, instance)),
      [Symbol.dispose]: () => undefined,
    }),
    grow: async (instance, index, sizeBytes) => {
      const volume = await requireVolume(instance, index);
      await using held = await volumes.hold([volume]);
      void held;
      await volumes.extend(volume, sizeBytes);
    },
    change: (instance, after, commit) => changeVolumes(own, instance, after, commit),
    volumes: {
      ...createVolumeVerbs(own, folders, parts.loadPlace),
      growBelow: async (instance, index, sizeBytes) => {
        await volumes.extend(await requireVolume(instance, index), sizeBytes);
      },
    },
  };
}

function createVolumeVerbs(
  { system, volumes }: Volumes,
  folders: InstanceFolders,
  loadPlace: VolumeParts['loadPlace'],
): Omit<VolumeVerbs, 'growBelow'> {
  const askRoom = createVolumeRoom(system, loadPlace);
  /** Without a record, a node without LVM has no volumes, and files can be removed without it. */
  const list = async ({ uuid, diskTemplate }: Known): Promise<readonly OwnVolume[]> => {
    try {
      return await volumes.list({ uuid });
    } catch (error) {
      if (diskTemplate !== undefined || !isAppError(error)) throw error;
      if (error.code === 'HOST_PREREQUISITE' || (await folders.hasFiles({ uuid }))) return [];
      throw error;
    }
  };
  return {
    room: async () => {
      const room = await askRoom();
      return room === undefined ? {} : { [system.roomName]: room };
    },
    isPoolFull: async (instance) => {
      const own = await list(instance);
      if (own.length === 0) return null;
      const pools = findPools(await system.listVolumes());
      return pools.some(
        ({ group, name, usedShare }) =>
          usedShare >= FULL_SHARE && own.some((one) => one.group === group && one.pool === name),
      );
    },
    listAbsent: async ({ disks, snapshots = [] }) => {
      const groups = new Set((await system.listGroups()).map(({ name }) => name));
      const all = [
        ...disks.map((disk) => namedOf(system, disk, { kind: 'disk' })),
        ...snapshots.flatMap((snapshot) =>
          snapshot.disks.map((disk) =>
            namedOf(system, disk, { kind: 'snapshot', snapshot: snapshot.uuid }),
          ),
        ),
      ];
      return all
        .filter(({ group }) => !groups.has(group))
        .map(({ group, name }) => `${group}/${name}`);
    },
    holdForRemoval: async (instance) => {
      const own = await list(instance);
      requireAlone(own, system.errors);
      const held = await volumes.hold(own);
      const release = (): Promise<void> => Promise.resolve(held[Symbol.asyncDispose]());
      return {
        remove: async () => {
          await release();
          for (const volume of own) await volumes.remove(volume);
        },
        [Symbol.asyncDispose]: release,
      };
    },
  };
}

/** The volume system and the volumes of a driver. */
interface Volumes {
  readonly system: VolumeSystem;
  readonly volumes: OwnVolumes;
}

function namedOf(system: VolumeSystem, disk: Disk, state: VolumeState): Named {
  return { group: system.placeOf(disk).group, name: volumeName(disk.uuid, state) };
}

function pathOfDisk(system: VolumeSystem, disk: Disk, state: VolumeState): string {
  return system.pathOf(namedOf(system, disk, state));
}

function volumesInPlace({ system, volumes }: Volumes, instance: InstanceRecord): InstallDisks {
  const { uuid, disks } = instance;
  let isEmptied = false;
  const create = async (): Promise<void> => {
    isEmptied = true;
    const there = await removeUnfinished(volumes, instance);
    for (const disk of disks) {
      const found = there.find((one) => one.disk === disk.uuid && one.state.kind === 'disk');
      if (found === undefined) await volumes.make({ uuid }, disk, { kind: 'disk' });
      else await volumes.empty(found);
    }
  };
  return {
    ...installed(system, disks, { kind: 'disk' }),
    areBeside: false,
    create,
    takeOver: () => Promise.resolve(),
    discard: async () => {
      if (isEmptied) await create();
    },
  };
}

function besideVolumes({ system, volumes }: Volumes, instance: InstanceRecord): InstallDisks {
  const { uuid, disks, instanceId } = instance;
  const state = { kind: 'next', installation: instanceId } as const;
  const isItsNext = (one: OwnVolume): boolean =>
    one.state.kind === 'next' && one.state.installation === instanceId;
  const discard = async (): Promise<void> => {
    for (const volume of await removeUnfinished(volumes, instance))
      if (isItsNext(volume)) await volumes.remove(volume);
  };
  return {
    ...installed(system, disks, state),
    ...{ areBeside: true, discard },
    create: async () => {
      await discard();
      for (const disk of disks) await volumes.make({ uuid }, disk, state);
    },
    takeOver: async () => {
      const { snapshots } = instance;
      const record = { disks, snapshots, currentIds: [instanceId], isDecided: true };
      await volumes.settle({ uuid }, record);
    },
  };
}

function installed(
  system: VolumeSystem,
  disks: InstanceRecord['disks'],
  state: VolumeState,
): Pick<InstallDisks, 'pathOf' | 'sync'> {
  const paths = disks.map((disk) => pathOfDisk(system, disk, state));
  return {
    pathOf: (index) => paths[index] ?? '',
    sync: async () => {
      for (const path of paths) await syncPath(path);
    },
  };
}

/**
 * Removes unfinished volumes.
 * @returns the others
 */
async function removeUnfinished(
  volumes: OwnVolumes,
  instance: Pick<InstanceRecord, 'uuid'>,
): Promise<readonly OwnVolume[]> {
  const all = await volumes.list(instance);
  const isNew = ({ state }: OwnVolume): boolean => state.kind === 'new';
  for (const volume of all.filter(isNew)) await volumes.remove(volume);
  return all.filter((volume) => !isNew(volume));
}

/**
 * Volumes are named by the UUIDs of their disks, so the removal of one does not rename the others.
 * A commit may have succeeded without an answer: settling asks the record.
 */
async function changeVolumes<Result>(
  { system, volumes }: Volumes,
  instance: InstanceRecord,
  after: InstanceRecord['disks'],
  commit: () => Promise<Result>,
): Promise<Result> {
  const { disks: before } = instance;
  const isIn = (disks: InstanceRecord['disks'], uuid: string): boolean =>
    disks.some((disk) => disk.uuid === uuid);
  const there = await volumes.list(instance);
  const gone = there.filter(({ disk }) => isIn(before, disk) && !isIn(after, disk));
  requireAlone(gone, system.errors);
  {
    await using undo = new AsyncDisposableStack();
    for (const disk of after.filter(({ uuid }) => !isIn(before, uuid))) {
      await volumes.make(instance, disk, { kind: 'ready' });
      // Settling removes it later if this fails; the first error matters.
      undo.defer(() => removeReady(volumes, instance, disk).catch(() => undefined));
    }
    await (await volumes.hold(gone))[Symbol.asyncDispose]();
    for (const volume of gone) await volumes.rename(volume, { kind: 'leaving' });
    undo.move();
  }
  const result = await commit();
  const { snapshots } = instance;
  await volumes.settle(instance, { disks: after, snapshots, currentIds: [], isDecided: false });
  return result;
}

async function removeReady(
  volumes: OwnVolumes,
  instance: InstanceRecord,
  { uuid }: Disk,
): Promise<void> {
  for (const volume of await volumes.list(instance))
    if (volume.disk === uuid && volume.state.kind === 'ready') await volumes.remove(volume);
}
