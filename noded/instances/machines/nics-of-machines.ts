import { instanceRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { listRunDirectories, RunDirectory } from '../../vmm/run-directory.ts';
import type { GuestNic } from '../../net/tenant/nat-guests.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';

/**
 * Lists the NICs in networks of all running instances of this node, by their records or by the copy
 * beside an orphan.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function listNicsOfMachines(
  vmDir: string,
  instances: Pick<InstanceRepository, 'readSome'>,
): Promise<readonly GuestNic[]> {
  return (await readMachines(vmDir, instances)).flatMap(nicsOf);
}

/**
 * Names the running instances that may reach private networks through this node.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function listOpenGuests(
  vmDir: string,
  instances: Pick<InstanceRepository, 'readSome'>,
): Promise<readonly string[]> {
  const found = await readMachines(vmDir, instances);
  const isOpen = ({ mode, networkName, reach }: InstanceRecord['nics'][number]): boolean =>
    (mode === 'user' || networkName !== undefined) && reach !== 'public';
  return found.filter(({ nics }) => nics.some(isOpen)).map(({ name }) => name);
}

async function readMachines(
  vmDir: string,
  instances: Pick<InstanceRepository, 'readSome'>,
): Promise<readonly InstanceRecord[]> {
  const uuids = await listRunDirectories(vmDir);
  const { readable } = await instances.readSome(uuids);
  const found = new Set(readable.map(({ id }) => id));
  const kept = await Promise.all(
    uuids.filter((uuid) => !found.has(uuid)).map((uuid) => readKept(vmDir, uuid)),
  );
  return [...readable.map(({ value }) => value), ...kept.filter((one) => one !== undefined)];
}

async function readKept(vmDir: string, uuid: string): Promise<InstanceRecord | undefined> {
  const note = await new RunDirectory(vmDir, uuid).readNote();
  return instanceRecord.safeParse(note === undefined ? undefined : parseJson(note)).data;
}

/** Includes NICs that only the running guest still has. */
function nicsOf({ name, nics, partsOfRun }: InstanceRecord): readonly GuestNic[] {
  return [...(partsOfRun?.nics ?? []), ...nics].flatMap(
    ({ uuid, mac, ip, networkName: network, reach }) =>
      network === undefined || ip === null ? [] : [{ uuid, mac, ip, name, network, reach }],
  );
}
