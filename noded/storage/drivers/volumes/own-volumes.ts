import type { InstanceDisk, InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import { MIB } from '#shared/units/bytes.ts';
import { holdDevice } from '../../hold-images.ts';
import { type Here, refuseForeign, requireGroup } from './check-group.ts';
import { findPools, requirePool } from './thin-pools.ts';
import {
  dirtyTag,
  findOwn,
  instanceTag,
  nodeTag,
  type OwnVolume,
  volumeName,
  type VolumeState,
} from './volume-names.ts';
import type { Place, VolumeErrors, VolumeSystem } from './volume-system.ts';
import { planSettling, type SettlingRecord, type SettlingStep } from './plan-settling.ts';

type Owner = Pick<InstanceRecord, 'uuid'>;

/**
 * Changes the volumes of an instance step by step. A volume is zeroed before it gets its final
 * name.
 */
export interface OwnVolumes {
  list(instance: Owner): Promise<readonly OwnVolume[]>;
  /** Makes a volume of zeros. It has its name when this resolves, and is gone when it rejects. */
  make(instance: Owner, disk: InstanceDisk, state: VolumeState): Promise<void>;
  /** Fills the volume with zeros. @throws AppError DISK_IN_USE; CONFLICT: it has snapshots */
  empty(volume: OwnVolume): Promise<void>;
  /** @throws AppError CONFLICT: it has snapshots */
  extend(volume: OwnVolume, sizeBytes: number): Promise<void>;
  rename(volume: OwnVolume, state: VolumeState): Promise<OwnVolume>;
  /**
   * Clones the present content of a thin volume.
   * @param made `isActive`: the clone will be read
   */
  clone(
    volume: OwnVolume,
    made: { readonly state: VolumeState; readonly isActive: boolean },
  ): Promise<void>;
  /** @throws AppError DISK_IN_USE; CONFLICT: it has snapshots */
  remove(volume: OwnVolume): Promise<void>;
  /** @throws AppError DISK_IN_USE */
  hold(volumes: readonly OwnVolume[]): Promise<AsyncDisposable>;
  /**
   * Ends interrupted changes.
   * @param onZeroing receives zeroing that continues after this resolves, which takes time in
   * proportion to the size. Later holds, removals and settling of the instance wait for it, so that
   * no guest gets another tenant's bytes.
   * @returns names of the volumes that it changed
   * @throws AppError CONFLICT: another node changes their group
   */
  settle(
    instance: Owner,
    record: SettlingRecord,
    onZeroing?: (zeroing: Promise<void>) => void,
  ): Promise<readonly string[]>;
}

export function createOwnVolumes(system: VolumeSystem, here: Here): OwnVolumes {
  const { errors } = system;
  const listAll = async (): Promise<readonly OwnVolume[]> => findOwn(await system.listVolumes());
  /**
   * Zeroing in progress, by instance. These promises never reject: a volume that is not zeroed has
   * a tag, and the next `settle` zeroes it.
   */
  const zeroings = new Map<string, Promise<void>>();
  const whenZeroed = async (instance: string): Promise<void> => zeroings.get(instance);
  const hold: OwnVolumes['hold'] = async (volumes) => {
    for (const { instance } of volumes) await whenZeroed(instance);
    await using held = new AsyncDisposableStack();
    for (const volume of volumes) {
      const device = await holdDevice(system.pathOf(volume));
      if (device !== undefined) held.use(device);
    }
    const all = held.move();
    return { [Symbol.asyncDispose]: () => all.disposeAsync() };
  };
  const remove: OwnVolumes['remove'] = async (volume) => {
    // Checked again, since an administrator may have made a snapshot meanwhile.
    const isIt = ({ group, name }: OwnVolume): boolean =>
      group === volume.group && name === volume.name;
    requireAlone((await listAll()).filter(isIt), errors);
    // `hold` names the process that has the volume open. LVM itself refuses to remove an open
    // volume.
    await (await hold([volume]))[Symbol.asyncDispose]();
    await system.remove(volume);
  };
  const rename: OwnVolumes['rename'] = async (volume, state) => {
    const name = volumeName(volume.disk, state);
    await system.rename(volume, name);
    return { ...volume, name, state };
  };
  const clean = async (volume: OwnVolume, fromBytes: number): Promise<void> => {
    await system.zero(volume, fromBytes, volume.sizeBytes);
    const { dirtyFromBytes } = volume;
    if (dirtyFromBytes !== null) await system.tag(volume, { remove: dirtyTag(dirtyFromBytes) });
  };
  const doStep = async (step: SettlingStep): Promise<unknown> => {
    const { volume } = step;
    switch (step.kind) {
      case 'remove':
        return remove(volume);
      case 'become-disk':
        return rename(volume, { kind: 'disk' });
      case 'become-snapshot':
        return rename(volume, { kind: 'snapshot', snapshot: step.snapshot });
      case 'activate':
        return system.activate(volume);
      case 'zero':
        return clean(volume, step.fromBytes);
    }
  };
  const doAll = async (steps: readonly SettlingStep[]): Promise<void> => {
    for (const step of steps) await doStep(step);
  };
  const makeAt = async (
    { uuid }: Owner,
    disk: Pick<InstanceDisk, 'uuid' | 'sizeBytes'>,
    { group, pool }: Place,
    state: VolumeState,
  ): Promise<void> => {
    const { sizeBytes } = disk;
    const name = volumeName(disk.uuid, { kind: 'new' });
    const { uuid: groupUuid } = requireGroup(group, await system.listGroups(), errors);
    // Checked again, since an administrator may have changed the pool.
    if (pool !== undefined)
      requirePool({ group, pool }, findPools(await system.listVolumes()), errors);
    const tags = [instanceTag(uuid, groupUuid), nodeTag(here.nodeName)];
    await system.create({ group, name, sizeBytes, tags, ...(pool !== undefined && { pool }) });
    try {
      if (pool === undefined) await system.zero({ group, name }, 0, sizeBytes);
      await system.rename({ group, name }, volumeName(disk.uuid, state));
    } catch (error) {
      // `settle` removes it later if this fails; the first error matters.
      await system.remove({ group, name }).catch(() => undefined);
      throw error;
    }
  };
  /** Recreates a thin volume. Zeroing it would allocate blocks for its whole size. */
  const makeAnew = async (volume: OwnVolume): Promise<void> => {
    const { instance, disk, sizeBytes, group, pool, state } = volume;
    await remove(volume);
    await makeAt({ uuid: instance }, { uuid: disk, sizeBytes }, { group, pool }, state);
  };
  return {
    ...{ hold, remove, rename },
    list: async ({ uuid }) => (await listAll()).filter(({ instance }) => instance === uuid),
    make: (instance, disk, state) => makeAt(instance, disk, system.placeOf(disk), state),
    clone: async (volume, { state, isActive }) => {
      // A clone copies blocks and misses data in the device's page cache.
      if (volume.isActive) await syncPath(system.pathOf(volume));
      const tags = [instanceTag(volume.instance, volume.groupUuid), nodeTag(here.nodeName)];
      await system.clone(volume, { name: volumeName(volume.disk, state), tags, isActive });
    },
    empty: async (volume) => {
      // New writes fill an administrator's snapshots of the volume until they are invalid.
      requireAlone([volume], errors);
      if (volume.pool !== '') return makeAnew(volume);
      if (!volume.isActive) await system.activate(volume);
      await using held = await hold([volume]);
      void held;
      await clean(volume, 0);
    },
    extend: async (volume, sizeBytes) => {
      // An interrupted job may have enlarged it already.
      if (volume.sizeBytes >= sizeBytes) return;
      // Unallocated blocks read as zeros.
      if (volume.pool !== '') return system.extend(volume, sizeBytes);
      // LVM does not enlarge a volume with snapshots.
      requireAlone([volume], errors);
      await system.tag(volume, { add: dirtyTag(volume.sizeBytes) });
      await system.extend(volume, sizeBytes);
      await clean({ ...volume, sizeBytes, dirtyFromBytes: volume.sizeBytes }, volume.sizeBytes);
    },
    settle: async ({ uuid }, record, onZeroing) => {
      await whenZeroed(uuid);
      const all = await listAll();
      const own = all.filter(({ instance }) => instance === uuid);
      refuseForeign(new Set(own.map(({ group }) => group)), all, here, errors);
      const steps = planSettling(own, record);
      const isLater = ({ kind }: SettlingStep): boolean =>
        onZeroing !== undefined && kind === 'zero';
      await doAll(steps.filter((one) => !isLater(one)));
      const later = steps.filter(isLater);
      if (later.length > 0) {
        const zeroing = doAll(later);
        const ended = zeroing.catch(() => undefined).then(() => void zeroings.delete(uuid));
        zeroings.set(uuid, ended);
        onZeroing?.(zeroing);
      }
      return steps.map(({ volume }) => volume.name);
    },
  };
}

/** Refuses volumes with an administrator's snapshots. @throws AppError CONFLICT */
export function requireAlone(volumes: readonly OwnVolume[], errors: VolumeErrors): void {
  for (const volume of volumes) {
    const [first] = volume.dependents;
    if (first !== undefined) throw errors.dependents(volume, first);
  }
}

/**
 * Refuses volumes whose size differs from the record, for callers that read whole volumes.
 * @throws AppError INSTANCE_STATE: a grow was interrupted
 */
export function requireRecordedSize(
  { name, disks }: Pick<InstanceRecord, 'name' | 'disks'>,
  volumes: readonly OwnVolume[],
): void {
  for (const [index, { uuid, sizeBytes }] of disks.entries()) {
    const found = volumes.find(({ disk, state }) => disk === uuid && state.kind === 'disk');
    if (found === undefined || found.sizeBytes === sizeBytes) continue;
    throw new AppError(
      'INSTANCE_STATE',
      `disk ${index} of '${name}' has ${found.sizeBytes / MIB} MiB, but its record says ${sizeBytes / MIB} MiB`,
      {
        hint: `An earlier grow was interrupted. Complete it: gnt-instance grow-disk --absolute ${name} ${index} ${found.sizeBytes / MIB}m`,
      },
    );
  }
}
