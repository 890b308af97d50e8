import type { InstanceRecord } from '#shared/contract/instance.ts';
import { INSTANCES } from '../../records/instance-repository.ts';
import type { NodeParts } from './check.ts';
import type { VolumeFacts } from './volume-facts.ts';

/** Disks whose instance the store does not know, while no machine without a record has them. */
export async function listNobodys(
  { records, host, guests }: NodeParts,
  own: VolumeFacts['own'],
): Promise<readonly string[]> {
  // Disks are listed first: an instance is recorded before its disks are made, and forgotten after.
  const folders = await host.disks.list();
  // The store itself, not what is in memory: a store that lost records told nobody. Those that
  // cannot be read are among them.
  const known = new Set(await records.store.ids(INSTANCES));
  const running = new Set(guests.keeper.list().map(({ machine }) => machine.uuid));
  const isNobodys = (uuid: string): boolean => !known.has(uuid) && !running.has(uuid);
  return [
    ...folders.filter(isNobodys),
    ...own.flatMap(({ instance, group, name }) =>
      isNobodys(instance) ? [`${group}/${name}`] : [],
    ),
  ];
}

/** Folders that a move has left, with where their instances are by now. */
export async function listLeft({ config, records, host }: NodeParts): Promise<readonly string[]> {
  const left: string[] = [];
  for (const uuid of await host.moving.listLeaving())
    left.push(`${config.paths.disksDir}/leaving-${uuid} (${await tellOwner(uuid, records)})`);
  return left;
}

/** Folders of copies and arrivals that nobody works on, with where their instances are. */
export async function listAbandoned(parts: NodeParts): Promise<readonly string[]> {
  const { config, records, host } = parts;
  const list = async (): Promise<readonly string[]> =>
    (await host.disks.listCopies()).filter((uuid) => !host.moving.isArriving(uuid));
  const found = new Map<string, string>();
  for (const uuid of await list()) found.set(uuid, await tellOwner(uuid, records));
  // They are listed twice: one may have been at its end, or a trial of what the file system can.
  const still = found.size === 0 ? [] : await list();
  return still.flatMap((uuid) => {
    const owner = found.get(uuid);
    return owner === undefined ? [] : `${config.paths.disksDir}/copying-${uuid} (${owner})`;
  });
}

async function tellOwner(uuid: string, { instances }: NodeParts['records']): Promise<string> {
  const record = await instances.findByUuid(uuid);
  return record === undefined ? 'no record' : `${record.name} of ${record.primaryNode}`;
}

/** Snapshots that no record names: a store that fails over may lose a commit that it had taken. */
export async function listForgotten(
  own: readonly InstanceRecord[],
  { records, host }: NodeParts,
): Promise<readonly string[]> {
  const forgotten: string[] = [];
  for (const instance of own) {
    const folders = await host.snapshots.listForgotten(instance);
    if (folders.length === 0) continue;
    // One that was taken meanwhile is in its record before it has this name.
    const now = await records.instances.findByUuid(instance.uuid);
    const isKnown = (path: string) => now?.snapshots.some(({ uuid }) => path.endsWith(uuid));
    if (now !== undefined) forgotten.push(...folders.filter((path) => !isKnown(path)));
  }
  return forgotten;
}
