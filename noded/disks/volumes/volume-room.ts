import { setTimeout as sleep } from 'node:timers/promises';
import type { HostRoom } from '#shared/contract/host-room.ts';
import type { InstanceDisk } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { RoomBeside } from '../instance-disks.ts';
import { requireGroup } from './check-group.ts';
import type { Lvm, VolumeGroup } from './lvm.ts';
import { findPools, neededInPool, type ThinPool } from './thin-pools.ts';
import type { OwnVolume } from './volume-names.ts';

type VolumeRoom = HostRoom['volumes'];

/** How old an answer may be. Who needs room is asked again when it is taken. */
const FRESH_MS = 10_000;
const FIRST_MS = 2000;

/**
 * The room of the group, or thin pool, for new disks, from memory: who asks for the room of a node,
 * mostly for disks in files, waits for no LVM.
 * @param loadPlace its name, as GROUP or GROUP/POOL
 */
export function createVolumeRoom(
  lvm: Pick<Lvm, 'listGroups' | 'listVolumes'>,
  loadPlace: () => Promise<string | undefined>,
): () => Promise<VolumeRoom> {
  let known: VolumeRoom;
  let asked: { readonly atMs: number; readonly answer: Promise<void> } | undefined;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    try {
      known = await measure(lvm, await loadPlace());
    } catch (error) {
      // Of an LVM that does not answer nobody knows what room there is.
      known = undefined;
      if (!isAppError(error)) throw error;
    } finally {
      isAsking = false;
    }
  };
  return async () => {
    const isFirst = asked === undefined;
    if (!isAsking && (asked === undefined || performance.now() - asked.atMs > FRESH_MS)) {
      asked = { atMs: performance.now(), answer: ask() };
      asked.answer.catch(() => undefined);
    }
    if (isFirst) await Promise.race([asked?.answer, sleep(FIRST_MS, undefined, { ref: false })]);
    return known;
  };
}

async function measure(
  lvm: Pick<Lvm, 'listGroups' | 'listVolumes'>,
  place: string | undefined,
): Promise<VolumeRoom> {
  if (place === undefined) return undefined;
  const [group, pool] = place.split('/');
  const found =
    pool === undefined
      ? (await lvm.listGroups()).find(({ name }) => name === group)
      : findPools(await lvm.listVolumes()).find((one) => one.group === group && one.name === pool);
  return found && { sizeBytes: found.sizeBytes, freeBytes: found.freeBytes };
}

interface Places {
  readonly groups: readonly VolumeGroup[];
  readonly pools: readonly ThinPool[];
  /** Disks that the instance has. */
  readonly own: readonly OwnVolume[];
  readonly imageBytes: number;
}

/**
 * Of several places that where the least would be left says. Pure.
 * @throws AppError HOST_PREREQUISITE
 */
export function planRoomBeside(
  disks: readonly InstanceDisk[],
  { groups, pools, own, imageBytes }: Places,
): RoomBeside {
  const rooms = [...new Set(disks.map(({ vg = '', pool = '' }) => `${vg}/${pool}`))].map(
    (place) => {
      const [group = '', pool = ''] = place.split('/');
      const isHere = (one: {
        readonly vg?: string | undefined;
        readonly pool?: string | undefined;
      }) => one.vg === group && (one.pool ?? '') === pool;
      const here = disks.filter(isHere);
      const there = own.filter(({ group: vg, pool: thin }) => isHere({ vg, pool: thin }));
      const found = requireGroup(group, groups);
      return pool === ''
        ? {
            neededBytes: here.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
            freeBytes: found.freeBytes,
          }
        : {
            neededBytes: neededInPool(here, there, imageBytes),
            freeBytes:
              pools.find((one) => one.group === group && one.name === pool)?.freeBytes ?? 0,
          };
    },
  );
  const [worst = { neededBytes: 0, freeBytes: 0 }] = rooms.toSorted(
    (a, b) => a.freeBytes - a.neededBytes - (b.freeBytes - b.neededBytes),
  );
  return { ...worst, isEnough: worst.freeBytes >= worst.neededBytes };
}
