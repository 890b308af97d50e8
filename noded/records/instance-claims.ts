import type { InstanceNic, InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { NETWORK_IPS } from './network-repository.ts';

export const NAMES = 'claim-name';
export const IPS = 'claim-ip';
export const MACS = 'claim-mac';

type Claim = Pick<Write, 'collection' | 'id'>;

/**
 * Plans the claims of instances, which are unique in the cluster: names, addresses, MACs. The
 * commit of the record writes them.
 * @param nameOf returns the name of another instance, or its UUID if its record is unreadable
 */
export function createInstanceClaims(store: Store, nameOf: (uuid: string) => Promise<string>) {
  const ownersOf = async (claims: readonly Claim[]): Promise<readonly unknown[]> => {
    const stored = await Promise.all(claims.map(({ collection, id }) => store.get(collection, id)));
    return stored.map((claim) => claim?.value);
  };

  /**
   * Drops only claims that the instance owns: a store that lost a claim may have given it to
   * another instance. Own claims change only in commits of the instance's record, and the caller's
   * commit expects its revision.
   */
  const planDrops = async (uuid: string, claims: readonly Claim[]): Promise<readonly Write[]> => {
    const owners = await ownersOf(claims);
    return claims
      .filter((_, index) => owners[index] === uuid)
      .map((claim) => ({ ...claim, expected: 'any', value: undefined }));
  };

  return {
    planChange: async (
      before: InstanceRecord,
      after: InstanceRecord,
    ): Promise<readonly Write[]> => {
      const lost = without(claimsOf(before), claimsOf(after));
      const gained = without(presentClaimsOf(after), presentClaimsOf(before));
      const owners = await ownersOf(gained);
      return [
        ...(await planDrops(before.uuid, lost)),
        // A MAC that the instance dropped and takes again may still be its own.
        ...gained
          .filter((_, index) => owners[index] !== before.uuid)
          .map((claim): Write => ({ ...claim, expected: 'absent', value: before.uuid })),
      ];
    },
    planRemoval: (record: InstanceRecord): Promise<readonly Write[]> =>
      planDrops(record.uuid, claimsOf(record)),
    /**
     * Plans the claims of a missing record. Each write expects the revision that was read.
     * @throws AppError INSTANCE_EXISTS, CONFLICT: another instance has a claim now
     */
    planReturn: async (record: InstanceRecord): Promise<readonly Write[]> => {
      const writes: Write[] = [];
      for (const { collection, id } of claimsOf(record)) {
        const owner = await store.get(collection, id);
        if (owner !== undefined && owner.value !== record.uuid)
          throw takenMeanwhile(record, collection, id, await nameOf(String(owner.value)));
        writes.push({ collection, id, expected: owner?.revision ?? 'absent', value: record.uuid });
      }
      return writes;
    },
    /**
     * Plans to drop all claims of an instance, without its record. Each write expects the revision
     * that was read.
     */
    planAll: async (uuid: string): Promise<readonly Write[]> => {
      const writes: Write[] = [];
      for (const collection of [NAMES, IPS, MACS, NETWORK_IPS]) {
        for (const { id, revision, value } of await store.list(collection))
          if (value === uuid) writes.push({ collection, id, expected: revision, value: undefined });
      }
      return writes;
    },
    /**
     * Refuses a requested address that is taken. An address from the pool is drawn again instead.
     * @throws AppError CONFLICT
     */
    refuseTakenAddress: async (
      error: StoreConflict,
      { nics }: Pick<InstanceRecord, 'nics'>,
    ): Promise<void> => {
      if (error.collection !== NETWORK_IPS) return;
      const asked = nics.some((nic) => addressClaimOf(nic)?.id === error.id);
      const [uuid] = await ownersOf([{ collection: NETWORK_IPS, id: error.id }]);
      if (!asked || typeof uuid !== 'string') return;
      const [network = '', ip = ''] = error.id.split('/');
      const owner = await nameOf(uuid);
      throw new AppError(
        'CONFLICT',
        `${ip} of network '${network}' belongs to instance '${owner}'`,
        {
          details: { network, ip, owner },
          hint: `Take a free address with ip=pool. Show the taken ones: gnt-network info ${network}`,
          cause: error,
        },
      );
    },
  };
}

/** Plans the claims of a new instance: the commit writes all of them or none. */
export function planNewClaims(record: InstanceRecord): readonly Write[] {
  return claimsOf(record).map((claim) => ({ ...claim, expected: 'absent', value: record.uuid }));
}

/** A dropped MAC or address stays claimed while the running QEMU process may send with it. */
function claimsOf(record: InstanceRecord): readonly Claim[] {
  const present = presentClaimsOf(record);
  const former = (record.partsOfRun?.nics ?? []).flatMap(claimsOfNic);
  return [...present, ...without(former, present)];
}

function presentClaimsOf(record: InstanceRecord): readonly Claim[] {
  return [
    { collection: NAMES, id: record.name },
    { collection: IPS, id: record.channel.ip },
    { collection: MACS, id: record.channel.mac },
    ...record.nics.flatMap(claimsOfNic),
  ];
}

function claimsOfNic(nic: InstanceNic): readonly Claim[] {
  const address = addressClaimOf(nic);
  return [{ collection: MACS, id: nic.mac }, ...(address === undefined ? [] : [address])];
}

function addressClaimOf({ networkName, ip }: InstanceNic): Claim | undefined {
  if (networkName === undefined || ip === null) return undefined;
  return { collection: NETWORK_IPS, id: `${networkName}/${ip}` };
}

function without(claims: readonly Claim[], others: readonly Claim[]): readonly Claim[] {
  return claims.filter(
    (claim) =>
      !others.some(({ collection, id }) => collection === claim.collection && id === claim.id),
  );
}

function takenMeanwhile(
  { name }: InstanceRecord,
  collection: string,
  id: string,
  owner: string,
): AppError {
  if (collection === NAMES) {
    return new AppError('INSTANCE_EXISTS', `another instance is called '${name}' now`, {
      details: { name },
      hint: `Rename that instance: gnt-instance rename ${name} NEWNAME`,
    });
  }
  const what =
    collection === MACS ? 'MAC address' : collection === IPS ? 'channel address' : 'address';
  return new AppError('CONFLICT', `the ${what} ${id} of '${name}' now belongs to '${owner}'`, {
    details: { owner },
    hint: `Remove one of the two: gnt-instance remove NAME`,
  });
}

export function refuseTakenName(error: unknown, name: string): void {
  if (error instanceof StoreConflict && error.collection === NAMES) {
    throw new AppError('INSTANCE_EXISTS', `an instance '${name}' exists already`, {
      details: { name },
      hint: 'Choose another name, or remove that instance first.',
      cause: error,
    });
  }
}

/** Refuses a taken MAC that the operator chose; drawn MACs are drawn again. */
export function refuseTakenMac(error: unknown, record: InstanceRecord): void {
  if (!(error instanceof StoreConflict) || error.collection !== MACS) return;
  const taken = record.nics.find((nic) => nic.mac === error.id);
  if (taken !== undefined) {
    throw new AppError('CONFLICT', `the MAC address ${taken.mac} belongs to another instance`, {
      hint: 'Choose another address, or omit it.',
      cause: error,
    });
  }
}
