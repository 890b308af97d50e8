import { setTimeout as sleep } from 'node:timers/promises';
import type { HostRoom } from '#shared/contract/host-room.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Lvm } from './lvm.ts';

type VolumeRoom = HostRoom['volumes'];

/** How old an answer may be. Who needs room is asked again when it is taken. */
const FRESH_MS = 10_000;
const FIRST_MS = 2000;

/**
 * The room of the group for new disks, from memory: who asks for the room of a node, mostly for disks
 * in files, waits for no LVM.
 * @param loadGroup the name of the group
 */
export function createVolumeRoom(
  lvm: Pick<Lvm, 'listGroups'>,
  loadGroup: () => Promise<string | undefined>,
): () => Promise<VolumeRoom> {
  let known: VolumeRoom;
  let asked: { readonly atMs: number; readonly answer: Promise<void> } | undefined;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    try {
      known = await measure(lvm, await loadGroup());
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
  lvm: Pick<Lvm, 'listGroups'>,
  name: string | undefined,
): Promise<VolumeRoom> {
  if (name === undefined) return undefined;
  const found = (await lvm.listGroups()).find((group) => group.name === name);
  return found && { sizeBytes: found.sizeBytes, freeBytes: found.freeBytes };
}
