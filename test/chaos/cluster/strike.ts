import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../../scripts/demo/lab.ts';
import { killNode } from '../../lab/kill-node.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import type { StoreServers } from './store-servers.ts';
import type { WiredHost } from './wire.ts';

export const FAULTS = [
  'kill-noded',
  'kill-host',
  'kill-master',
  'kill-replica',
  'kill-sentinel',
  'pause-master',
  'cut-link',
  'slow-link',
] as const;
export type Fault = (typeof FAULTS)[number];

const SHORTEST_MS = 1000;
const LONGEST_MS = 8000;
/** Delay in both directions: longer than any answer takes, shorter than the cluster's timeouts. */
const SLOW_MS = 300;

export interface Place {
  readonly name: string;
  readonly lab: Lab;
  readonly host: WiredHost;
}

export interface Battlefield {
  readonly places: readonly Place[];
  readonly stores: StoreServers;
}

/** Applies one fault for a while and then undoes it. @returns a description */
export async function strike(
  fault: Fault,
  { places, stores }: Battlefield,
  random: SeededRandom,
): Promise<string> {
  const { name, lab, host } = random.pick(places);
  const at = random.pick(stores.servers);
  const forMs = SHORTEST_MS + random.below(LONGEST_MS - SHORTEST_MS);
  const master = (await stores.master()) ?? at;
  const replica = stores.servers.find((server) => server !== master) ?? at;
  const told = (what: string): string => `${fault} ${what} for ${forMs} ms`;
  switch (fault) {
    case 'kill-noded':
    case 'kill-host':
      await kill(lab, fault === 'kill-host');
      await sleep(forMs);
      await lab.startNode('--node', name);
      return told(name);
    case 'kill-master':
    case 'kill-replica': {
      const server = fault === 'kill-master' ? master : replica;
      await server.kill();
      await sleep(forMs);
      server.start();
      return told(server.host.address);
    }
    case 'kill-sentinel':
      await at.killSentinel();
      await sleep(forMs);
      at.start();
      return told(at.host.address);
    case 'pause-master':
      master.pause();
      await sleep(forMs);
      master.resume();
      return told(master.host.address);
    case 'cut-link':
    case 'slow-link':
      host.setWire(fault === 'cut-link' ? { isCut: true } : { delayMs: SLOW_MS });
      await sleep(forMs);
      host.setWire({});
      return told(name);
  }
}

/** Kills the daemon, or all processes of the host as a power cut would. Files stay. */
async function kill(lab: Lab, isWhole: boolean): Promise<void> {
  await killNode(lab);
  if (!isWhole) return;
  for (const { pid } of await lab.processes()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended already.
    }
  }
}
