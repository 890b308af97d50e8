import { existsSync } from 'node:fs';
import { run } from '#shared/process/run.ts';
import { natNamesOf } from '../../noded/net/tenant/nat-names.ts';
import type { PointOperation, PointScene } from './point-scene.ts';

const NETWORK = 'nat';
/** Not used by hosts that run this test. */
const RANGE = { network: '10.214.77.0/24', gateway: '10.214.77.1' } as const;

/**
 * Returns the operations on a NAT network: its bridge, dnsmasq, nftables rules and forwarding must
 * match the record. All of it is in the host's own network namespace.
 */
export function createNatOperations(scene: PointScene): readonly PointOperation[] {
  const { must, list } = scene;
  const isConnected = async (): Promise<boolean> =>
    (await list('/v1/networks')).some(
      // A network as the API returns it.
      ({ name, connections }) => name === NETWORK && Object.keys(connections as object).length > 0,
    );
  const connect = {
    ...{ opcode: 'NETWORK_CONNECT', name: NETWORK },
    connection: { mode: 'nat' },
  } as const;
  const disconnect = { opcode: 'NETWORK_DISCONNECT', name: NETWORK } as const;
  const bring = async (wanted: boolean): Promise<void> => {
    if (!(await list('/v1/networks')).some(({ name }) => name === NETWORK))
      await must({ opcode: 'NETWORK_ADD', name: NETWORK, ...RANGE });
    if ((await isConnected()) !== wanted) await must(wanted ? connect : disconnect);
  };
  const judge = async (isDone: boolean, wanted: boolean): Promise<readonly string[]> => {
    const isThere = await isConnected();
    return [
      ...(isDone && isThere !== wanted ? ['it is what it was'] : []),
      ...(await judgeHost(scene, isThere)),
    ];
  };
  return [
    {
      name: 'network connect',
      prepare: () => bring(false),
      opcode: () => connect,
      judge: (isDone) => judge(isDone, true),
      isRepeated: true,
    },
    {
      name: 'network disconnect',
      prepare: () => bring(true),
      opcode: () => disconnect,
      judge: (isDone) => judge(isDone, false),
    },
  ];
}

/** Checks that all parts of the network exist, or none. */
async function judgeHost({ lab }: PointScene, wanted: boolean): Promise<readonly string[]> {
  const { root, networksDir } = lab.paths;
  const { bridgePrefix, lentPrefix, table } = natNamesOf(root);
  const tables = (await run('nft', ['list', 'tables'])).stdout.split('\n');
  const links = (await run('ip', ['link'])).stdout;
  const count = (text: string, part: string): number => text.split(part).length - 1;
  const dnsmasqs = (await lab.processes()).filter(({ command }) => command.includes('dnsmasq'));
  const found = {
    bridges: count(links, `: ${bridgePrefix}`),
    daemons: dnsmasqs.length,
    folders: existsSync(networksDir) ? 1 : 0,
    // One table for each address family.
    tables: tables.filter((line) => line.endsWith(` ${table}`)).length / 2,
    lent: Math.min(count(links, lentPrefix), 1),
  };
  return Object.entries(found)
    .filter(([, number]) => number !== (wanted ? 1 : 0))
    .map(([what, number]) => `${number} ${what} of a network that is ${wanted ? '' : 'not '}connected`); // prettier-ignore
}
