import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import type { InstallDisks } from '../install-disks.ts';
import type { InstanceDisks } from '../instance-disks.ts';
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
import type { Named, VolumeSystem } from './volume-system.ts';

type Disk = InstanceRecord['disks'][number];

/** An instance as those see it who look after its files alone. */
function withoutDisks<Instance extends Pick<InstanceRecord, 'disks'>>(
  instance: Instance,
): Instance {
  return { ...instance, disks: [] };
}

/**
 * Disks of the system's template are its volumes; everything else of such an instance, its
 * firmware's variables and its seed disk, stays in its folder, and is looked after there.
 * @param files disks of all other templates
 * @param here `loadPlace`: where new disks are made, as the cluster names it
 */
export function withVolumes(
  files: InstanceDisks,
  system: VolumeSystem,
  here: Here & { readonly loadPlace: () => Promise<string | undefined> },
): InstanceDisks {
  const { template, errors } = system;
  const volumes = createOwnVolumes(system, here);
  const askRoom = createVolumeRoom(system, here.loadPlace);
  const isOurs = ({ diskTemplate }: Pick<InstanceRecord, 'diskTemplate'>): boolean =>
    diskTemplate === template;
  const diskPath = (disk: Disk): string => pathOfDisk(system, disk, { kind: 'disk' });
  const settle: InstanceDisks['settle'] = async (instance, onZeroing) => {
    if (!isOurs(instance)) return files.settle(instance);
    const { disks, snapshots, instanceId, restoreId, installState } = instance;
    return [
      ...(await files.settle(withoutDisks(instance))),
      ...(await volumes.settle(
        instance,
        {
          ...{ disks, snapshots, currentIds: [instanceId, restoreId] },
          isDecided: installState !== 'installing',
        },
        onZeroing,
      )),
    ];
  };
  const activate: InstanceDisks['activate'] = async (instance) => {
    if (!isOurs(instance)) return files.activate(instance);
    for (const [index, disk] of instance.disks.entries())
      if (!(await system.isThere(namedOf(system, disk, { kind: 'disk' }))))
        throw errors.noDevice(instance, index, diskPath(disk));
    return instance.disks.map((disk, index) => {
      const { name, sizeBytes } = disk;
      return { index, name, sizeBytes, path: diskPath(disk) };
    });
  };
  const listDisks = async (instance: Pick<InstanceRecord, 'uuid'>): Promise<readonly OwnVolume[]> =>
    (await volumes.list(instance)).filter(({ state }) => state.kind === 'disk');
  const requireVolume = async (instance: InstanceRecord, index: number): Promise<OwnVolume> => {
    await settle(instance);
    await activate(instance);
    const uuid = instance.disks[index]?.uuid;
    const found = (await listDisks(instance)).find(({ disk }) => disk === uuid);
    if (found === undefined) throw new Error(`disk ${index} has no volume of its instance`);
    return found;
  };
  const hold: InstanceDisks['hold'] = async (instance) => {
    if (!isOurs(instance)) return files.hold(instance);
    await settle(instance);
    await activate(instance);
    const own = await listDisks(instance);
    requireRecordedSize(instance, own);
    await using held = new AsyncDisposableStack();
    held.use(await files.hold(withoutDisks(instance)));
    held.use(await volumes.hold(own));
    const all = held.move();
    return { [Symbol.asyncDispose]: () => all.disposeAsync() };
  };
  const checkUnused: InstanceDisks['checkUnused'] = async (instance) => {
    await files.checkUnused(instance);
    if (instance.diskTemplate !== template) return;
    await (await volumes.hold(await listDisks(instance)))[Symbol.asyncDispose]();
  };
  const openForInstall: InstanceDisks['openForInstall'] = (instance, where) => {
    if (!isOurs(instance)) return files.openForInstall(instance, where);
    const folder = files.openForInstall(withoutDisks(instance), { kind: 'in-place' });
    const filled =
      where.kind === 'beside'
        ? besideVolumes({ system, volumes }, instance)
        : volumesInPlace({ system, volumes }, instance);
    return {
      ...filled,
      create: async () => {
        await folder.create();
        await filled.create();
      },
      sync: async () => {
        await folder.sync();
        await filled.sync();
      },
      [Symbol.dispose]: () => folder[Symbol.dispose](),
    };
  };
  return {
    ...files,
    ...{ settle, activate, hold, openForInstall },
    volumeRoom: async () => {
      const room = await askRoom();
      return { ...(await files.volumeRoom()), ...(room && { [system.roomName]: room }) };
    },
    isPoolFull: async (instance) => {
      const own = await listToRemove({ files, volumes, template }, instance);
      if (own.length === 0) return files.isPoolFull(instance);
      const pools = findPools(await system.listVolumes());
      return pools.some(
        ({ group, name, usedShare }) =>
          usedShare >= FULL_SHARE && own.some((one) => one.group === group && one.pool === name),
      );
    },
    listAbsent: async (instance) => {
      if (!isOurs(instance)) return files.listAbsent(instance);
      const groups = new Set((await system.listGroups()).map(({ name }) => name));
      const states = [
        ...instance.disks.map((disk) => [disk, { kind: 'disk' }] as const),
        ...(instance.snapshots ?? []).flatMap(({ uuid, disks }) =>
          disks.map((disk) => [disk, { kind: 'snapshot', snapshot: uuid }] as const),
        ),
      ];
      return states
        .map(([disk, state]) => ({ ...system.placeOf(disk), name: volumeName(disk.uuid, state) }))
        .filter(({ group }) => !groups.has(group))
        .map(({ group, name }) => `${group}/${name}`);
    },
    pathOf: (instance, index) => {
      const disk = instance.disks[index];
      return isOurs(instance) && disk !== undefined
        ? diskPath(disk)
        : files.pathOf(instance, index);
    },
    checkSpace: (instance) =>
      // Of the group it is asked with the sizes.
      files.checkSpace(instance !== undefined && isOurs(instance) ? undefined : instance),
    checkSizes: async (disks, instance) => {
      if (!isOurs(instance)) return files.checkSizes(disks, instance);
      refuseScanned(await system.isScanned(), errors);
      const placed = disks.map((disk) => ({ ...disk, ...system.placeOf(disk) }));
      const [groups, all] = [await system.listGroups(), await system.listVolumes()];
      const own = findOwn(all);
      checkGroups(placed, { groups, volumes: own, pools: findPools(all) }, errors);
      refuseForeign(new Set(placed.map(({ group }) => group)), own, here, errors);
    },
    checkUnused,
    checkOverwrite: async (instance) => {
      if (!isOurs(instance)) return files.checkOverwrite(instance);
      await checkUnused(instance);
      requireAlone(await listDisks(instance), errors);
    },
    createEmpty: async (instance) => {
      using filled = openForInstall(instance, { kind: 'in-place' });
      await filled.create();
      await filled.sync();
    },
    roomBeside: async (instance, imageBytes) => {
      if (!isOurs(instance)) return files.roomBeside(instance, imageBytes);
      const own = await listDisks(instance);
      requireAlone(own, errors);
      const [groups, all] = [await system.listGroups(), await system.listVolumes()];
      const placed = instance.disks.map((disk) => ({ ...disk, ...system.placeOf(disk) }));
      return planRoomBeside(placed, { groups, pools: findPools(all), own, imageBytes }, errors);
    },
    grow: async (instance, index, sizeBytes) => {
      if (!isOurs(instance)) return files.grow(instance, index, sizeBytes);
      const volume = await requireVolume(instance, index);
      await using held = await volumes.hold([volume]);
      void held;
      await volumes.extend(volume, sizeBytes);
    },
    growBelow: async (instance, index, sizeBytes) => {
      if (!isOurs(instance)) return files.growBelow(instance, index, sizeBytes);
      await volumes.extend(await requireVolume(instance, index), sizeBytes);
    },
    change: async (instance, after, commit) => {
      if (!isOurs(instance)) return files.change(instance, after, commit);
      await settle(instance);
      await activate(instance);
      return changeVolumes({ system, volumes }, instance, after, commit);
    },
    checkCopy: async (from) => {
      if (isOurs(from)) throw errors.notDone(from, 'copied');
      await files.checkCopy(from);
    },
    remove: async (instance, beforeIt) => {
      const own = await listToRemove({ files, volumes, template }, instance);
      if (own.length === 0) return files.remove(instance, beforeIt);
      requireAlone(own, errors);
      await using held = await volumes.hold(own);
      await files.remove(instance, async () => {
        await beforeIt?.();
        await held[Symbol.asyncDispose]();
        for (const volume of own) await volumes.remove(volume);
      });
    },
  };
}

/**
 * Of one without a record a node without LVM has none; and where its disks are files, an LVM that
 * does not answer keeps nobody from removing them.
 */
async function listToRemove(
  {
    files,
    volumes,
    template,
  }: {
    readonly files: InstanceDisks;
    readonly volumes: OwnVolumes;
    readonly template: VolumeSystem['template'];
  },
  { uuid, diskTemplate }: Parameters<InstanceDisks['remove']>[0],
): Promise<readonly OwnVolume[]> {
  if (diskTemplate !== undefined && diskTemplate !== template) return [];
  return volumes.list({ uuid }).catch(async (error: unknown) => {
    if (diskTemplate !== undefined || !isAppError(error)) throw error;
    if (error.code === 'HOST_PREREQUISITE' || (await files.hasFiles({ uuid }))) return [];
    throw error;
  });
}

/** What the disks of an instance are made and found by. */
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

/** What a kill left in the middle of being made. @returns the others */
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
 * Volumes are called by the UUIDs of their disks: the others stay as they are, whichever one
 * leaves. A commit whose answer was lost counts: settling asks the record.
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
      // What cannot be removed now is removed by settling; what went wrong first is told.
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
