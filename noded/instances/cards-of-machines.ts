import { instanceRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { listRunDirectories, RunDirectory } from '../hypervisor/run-directory.ts';
import type { GuestCard } from '../networks/nat-guests.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';

/**
 * Cards in networks of all machines of this node, by their records, or by what is kept beside a
 * machine whose record is lost.
 * @throws AppError STORE_UNAVAILABLE
 */
export async function listCardsOfMachines(
  vmDir: string,
  instances: Pick<InstanceRepository, 'readSome'>,
): Promise<readonly GuestCard[]> {
  const uuids = await listRunDirectories(vmDir);
  const { readable } = await instances.readSome(uuids);
  const found = new Set(readable.map(({ id }) => id));
  const kept = await Promise.all(
    uuids.filter((uuid) => !found.has(uuid)).map((uuid) => readKept(vmDir, uuid)),
  );
  return [
    ...readable.map(({ value }) => value),
    ...kept.filter((one) => one !== undefined),
  ].flatMap(cardsOf);
}

async function readKept(vmDir: string, uuid: string): Promise<InstanceRecord | undefined> {
  const note = await new RunDirectory(vmDir, uuid).readNote();
  return instanceRecord.safeParse(note === undefined ? undefined : parseJson(note)).data;
}

/** Cards in networks, those included that its machine has only as long as it runs. */
function cardsOf({ name, nics, partsOfRun }: InstanceRecord): readonly GuestCard[] {
  return [...(partsOfRun?.nics ?? []), ...nics].flatMap(
    ({ uuid, mac, ip, networkName: network }) =>
      network === undefined || ip === null ? [] : [{ uuid, mac, ip, name, network }],
  );
}
