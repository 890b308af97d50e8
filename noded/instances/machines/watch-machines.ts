import { pause } from '#shared/abort/until.ts';
import type { HostRoom, VolumeRoom } from '#shared/contract/host-room.ts';
import type { MachineChanges, RunningMachine } from '#shared/contract/instance.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';

/** Maximum delay of a report. */
const LOOK_MS = 250;

export function runningMachineOf({ machine, device, lostSecrets }: KeptMachine): RunningMachine {
  const { uuid, pid, accelerator, startedAtMs, halt } = machine;
  return {
    uuid,
    pid,
    accelerator,
    startedAtMs,
    tap: device,
    halt,
    lostSecrets: [...lostSecrets],
  };
}

/** Returns the running instances of this node, without installations. */
export function listRunning(keeper: Pick<MachineKeeper, 'list'>): readonly RunningMachine[] {
  return keeper
    .list()
    .filter(({ kind }) => kind === 'run')
    .map(runningMachineOf);
}

/** The capacity is measured at every eighth look. */
const LOOKS_A_ROOM = 8;
/** Free space is rounded to this part of the whole, because it changes constantly. */
const ROOM_PARTS = 128;

/** Yields the running instances of this node, then changes, until the signal aborts. */
export async function* watchMachines(
  keeper: Pick<MachineKeeper, 'list'>,
  measureRoom: () => Promise<HostRoom>,
  signal: AbortSignal,
): AsyncGenerator<MachineChanges> {
  let told = new Map<string, string>();
  let toldRoom = '';
  let last: HostRoom | undefined;
  let isMeasuring = false;
  const untilNextLook = (): Promise<boolean> => pause(LOOK_MS, signal, { ref: false });
  // A broken or hanging file system must not delay reports of running instances.
  const measure = async (): Promise<void> => {
    isMeasuring = true;
    try {
      last = inParts(await measureRoom());
    } catch {
      last = undefined;
    } finally {
      isMeasuring = false;
    }
  };
  for (let look = 0; !signal.aborted; look += 1) {
    const isFirst = look === 0;
    if (look % LOOKS_A_ROOM === 0 && !isMeasuring) await Promise.race([measure(), untilNextLook()]);
    const room = JSON.stringify(last) === toldRoom ? undefined : last;
    if (room !== undefined) toldRoom = JSON.stringify(room);
    const running = listRunning(keeper);
    const now = new Map(running.map((each) => [each.uuid, JSON.stringify(each)]));
    const changed = running.filter(({ uuid }) => told.get(uuid) !== now.get(uuid));
    const ended = [...told.keys()].filter((uuid) => !now.has(uuid));
    if (isFirst || changed.length > 0 || ended.length > 0 || room !== undefined)
      yield { isFirst, running: changed, ended, ...(room && { room }) };
    told = now;
    await untilNextLook();
  }
}

function inParts(room: HostRoom): HostRoom {
  const down = (free: number, whole: number): number => {
    const part = Math.max(1, Math.floor(whole / ROOM_PARTS));
    return Math.floor(free / part) * part;
  };
  const ofVolumes = ({ sizeBytes, freeBytes }: VolumeRoom): VolumeRoom => ({
    sizeBytes,
    freeBytes: down(freeBytes, sizeBytes),
  });
  return {
    ...room,
    memoryFreeMiB: down(room.memoryFreeMiB, room.memoryMiB),
    diskFreeBytes: down(room.diskFreeBytes, room.diskBytes),
    ...(room.volumes && { volumes: ofVolumes(room.volumes) }),
    ...(room.zvols && { zvols: ofVolumes(room.zvols) }),
  };
}
