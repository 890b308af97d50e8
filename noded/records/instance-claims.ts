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
 * What an instance has for itself in the whole cluster: a name, addresses, MACs. What is planned
 * here is written in the commit of the record that it is of.
 */
export interface InstanceClaims {
  /** What a change of a record claims, and what it gives up. */
  planChange(before: InstanceRecord, after: InstanceRecord): Promise<readonly Write[]>;
  /** What goes with a record. */
  planRemoval(record: InstanceRecord): Promise<readonly Write[]>;
  /**
   * The claims of a record that is not there, each expected as it was found.
   * @throws AppError INSTANCE_EXISTS, CONFLICT: what another instance has by now
   */
  planReturn(record: InstanceRecord): Promise<readonly Write[]>;
  /** All that an instance claims, whatever its record says: each goes if it is as it was found. */
  planAll(uuid: string): Promise<readonly Write[]>;
  /**
   * An address that was asked for; one of the pool is drawn again.
   * @throws AppError CONFLICT
   */
  refuseTakenAddress(error: StoreConflict, record: Pick<InstanceRecord, 'nics'>): Promise<void>;
}

/** @param nameOf of another instance, or its uuid where it has none that can be read */
export function createInstanceClaims(
  store: Store,
  nameOf: (uuid: string) => Promise<string>,
): InstanceClaims {
  const ownersOf = async (claims: readonly Claim[]): Promise<readonly unknown[]> => {
    const stored = await Promise.all(claims.map(({ collection, id }) => store.get(collection, id)));
    return stored.map((claim) => claim?.value);
  };

  /**
   * Gives back those of some claims that are an instance's own: a store that lost a claim may have
   * given it to another. Own ones change in commits of that instance's record alone, which the
   * caller's commit expects as it was read.
   */
  const planDrops = async (uuid: string, claims: readonly Claim[]): Promise<readonly Write[]> => {
    const owners = await ownersOf(claims);
    return claims
      .filter((_, index) => owners[index] === uuid)
      .map((claim) => ({ ...claim, expected: 'any', value: undefined }));
  };

  return {
    planChange: async (before, after) => {
      const lost = without(claimsOf(before), claimsOf(after));
      const gained = without(presentClaimsOf(after), presentClaimsOf(before));
      const owners = await ownersOf(gained);
      return [
        ...(await planDrops(before.uuid, lost)),
        // A MAC that it gave up and takes again is still its own, if nobody has got it meanwhile.
        ...gained
          .filter((_, index) => owners[index] !== before.uuid)
          .map((claim): Write => ({ ...claim, expected: 'absent', value: before.uuid })),
      ];
    },
    planRemoval: (record) => planDrops(record.uuid, claimsOf(record)),
    planReturn: async (record) => {
      const writes: Write[] = [];
      for (const { collection, id } of claimsOf(record)) {
        const owner = await store.get(collection, id);
        if (owner !== undefined && owner.value !== record.uuid)
          throw takenMeanwhile(record, collection, id, await nameOf(String(owner.value)));
        writes.push({ collection, id, expected: owner?.revision ?? 'absent', value: record.uuid });
      }
      return writes;
    },
    planAll: async (uuid) => {
      const writes: Write[] = [];
      for (const collection of [NAMES, IPS, MACS, NETWORK_IPS]) {
        for (const { id, revision, value } of await store.list(collection))
          if (value === uuid) writes.push({ collection, id, expected: revision, value: undefined });
      }
      return writes;
    },
    refuseTakenAddress: async (error, { nics }) => {
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

/** The claims of a new instance: all its own, or none of it is there. */
export function planNewClaims(record: InstanceRecord): readonly Write[] {
  return claimsOf(record).map((claim) => ({ ...claim, expected: 'absent', value: record.uuid }));
}

/** A MAC or an address that it gave up is its own as long as its machine may still send with it. */
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

/** The claim on the address of a card in a network. */
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

/** A MAC that the operator chose; ours are drawn again. */
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
