import { setTimeout as sleep } from 'node:timers/promises';
import type { VolumeRoom } from '#shared/contract/host-room.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { RoomBeside } from '../../disk-driver.ts';
import { type PlacedDisk, requireGroup } from './check-group.ts';
import { findPools, neededInPool, type ThinPool } from './thin-pools.ts';
import type { OwnVolume } from './volume-names.ts';
import type { Place, VolumeErrors, VolumeGroup, VolumeSystem } from './volume-system.ts';

type AskedForRoom = Pick<VolumeSystem, 'listGroups' | 'listVolumes' | 'parsePlace'>;

/** Maximum age of an answer. Actual allocations check the room again. */
const FRESH_MS = 10_000;
const FIRST_MS = 2000;

/**
 * Creates a function that returns the cached room for new volumes. Requests for a node's room,
 * mostly for disks in files, must not wait for LVM or ZFS.
 * @param loadPlace as the cluster names it
 */
export function createVolumeRoom(
  system: AskedForRoom,
  loadPlace: () => Promise<string | undefined>,
): () => Promise<VolumeRoom | undefined> {
  let known: VolumeRoom | undefined;
  let asked: { readonly atMs: number; readonly answer: Promise<void> } | undefined;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    try {
      known = await measure(system, await loadPlace());
    } catch (error) {
      // The room is unknown while LVM does not respond.
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
  system: AskedForRoom,
  place: string | undefined,
): Promise<VolumeRoom | undefined> {
  if (place === undefined) return undefined;
  const { group, pool } = system.parsePlace(place);
  const found =
    pool === undefined
      ? (await system.listGroups()).find(({ name }) => name === group)
      : findPools(await system.listVolumes()).find(
          (one) => one.group === group && one.name === pool,
        );
  return found && { sizeBytes: found.sizeBytes, freeBytes: found.freeBytes };
}

interface Places {
  readonly groups: readonly VolumeGroup[];
  readonly pools: readonly ThinPool[];
  /** Present disks of the instance. */
  readonly own: readonly OwnVolume[];
  readonly imageBytes: number;
}

/**
 * Returns the room at the place that would be left with the least. Pure.
 * @throws AppError HOST_PREREQUISITE
 */
export function planRoomBeside(
  disks: readonly (PlacedDisk & { readonly uuid: string })[],
  { groups, pools, own, imageBytes }: Places,
  errors: VolumeErrors,
): RoomBeside {
  const keyOf = ({ group, pool = '' }: Place): string => `${group} ${pool}`;
  const rooms = [...Map.groupBy(disks, keyOf)].map(([key, here]) => {
    const [{ group, pool } = { group: '', pool: undefined }] = here;
    const found = requireGroup(group, groups, errors);
    if (pool === undefined) {
      const neededBytes = here.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      return { neededBytes, freeBytes: found.freeBytes };
    }
    const there = own.filter((one) => keyOf(one) === key);
    const its = pools.find((one) => one.group === group && one.name === pool);
    return { neededBytes: neededInPool(here, there, imageBytes), freeBytes: its?.freeBytes ?? 0 };
  });
  const [worst = { neededBytes: 0, freeBytes: 0 }] = rooms.toSorted(
    (a, b) => a.freeBytes - a.neededBytes - (b.freeBytes - b.neededBytes),
  );
  return { ...worst, isEnough: worst.freeBytes >= worst.neededBytes };
}
