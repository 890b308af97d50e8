import { setTimeout as sleep } from 'node:timers/promises';
import type { MachineChanges, RunningMachine } from '#shared/contract/instance.ts';
import type { KeptMachine, MachineKeeper } from './machine-keeper.ts';

/** How much later others hear of what began or ended, at most. */
const LOOK_MS = 250;

export function runningMachineOf({ machine, device }: KeptMachine): RunningMachine {
  const { uuid, pid, accelerator, startedAtMs, halt } = machine;
  return { uuid, pid, accelerator, startedAtMs, tap: device, halt };
}

/** What runs on this node, and then what changes of it, until the signal. */
export async function* watchMachines(
  keeper: Pick<MachineKeeper, 'list'>,
  signal: AbortSignal,
): AsyncGenerator<MachineChanges> {
  let told = new Map<string, string>();
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const running = keeper
      .list()
      .filter(({ kind }) => kind === 'run')
      .map(runningMachineOf);
    const now = new Map(running.map((each) => [each.uuid, JSON.stringify(each)]));
    const changed = running.filter(({ uuid }) => told.get(uuid) !== now.get(uuid));
    const ended = [...told.keys()].filter((uuid) => !now.has(uuid));
    if (isFirst || changed.length > 0 || ended.length > 0)
      yield { isFirst, running: changed, ended };
    told = now;
    await sleep(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
