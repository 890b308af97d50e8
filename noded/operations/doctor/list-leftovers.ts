import type { InstanceRecord } from '#shared/contract/instance.ts';
import { INSTANCES } from '../../records/instance-repository.ts';
import type { NodeParts } from './check.ts';
import type { VolumeFacts } from './volume-facts.ts';

/** Lists disks without a record, except those of running orphans. */
export async function listNobodys(
  { records, host, guests }: NodeParts,
  own: VolumeFacts['own'],
): Promise<readonly string[]> {
  // List disks first: an instance is recorded before its disks are made, and forgotten after.
  const folders = await host.disks.list();
  // Read the store, not the memory: a store that lost records sends no notice. Its ids include
  // unreadable records.
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

/** Lists folders that a move has left, with the present nodes of their instances. */
export async function listLeft({ config, records, host }: NodeParts): Promise<readonly string[]> {
  const left: string[] = [];
  for (const uuid of await host.moving.listLeaving())
    left.push(`${config.paths.disksDir}/leaving-${uuid} (${await tellOwner(uuid, records)})`);
  return left;
}

/** Lists folders of copies and arrivals without a job, with the nodes of their instances. */
export async function listAbandoned(parts: NodeParts): Promise<readonly string[]> {
  const { config, records, host } = parts;
  const list = async (): Promise<readonly string[]> =>
    (await host.disks.listCopies()).filter((uuid) => !host.moving.isArriving(uuid));
  const found = new Map<string, string>();
  for (const uuid of await list()) found.set(uuid, await tellOwner(uuid, records));
  // List twice: a copy may have been ending, or the folder was a test of the file system.
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

/** Lists snapshots without a record: a store that fails over may lose an acknowledged commit. */
export async function listForgotten(
  own: readonly InstanceRecord[],
  { records, host }: NodeParts,
): Promise<readonly string[]> {
  const forgotten: string[] = [];
  for (const instance of own) {
    const folders = await host.snapshots.listForgotten(instance);
    if (folders.length === 0) continue;
    // A snapshot taken meanwhile is in its record before its folder has this name.
    const now = await records.instances.findByUuid(instance.uuid);
    const isKnown = (path: string) => now?.snapshots.some(({ uuid }) => path.endsWith(uuid));
    if (now !== undefined) forgotten.push(...folders.filter((path) => !isKnown(path)));
  }
  return forgotten;
}
