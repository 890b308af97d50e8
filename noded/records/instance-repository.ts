import { instanceRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import { instanceName } from '#shared/contract/primitives.ts';
import type { Clock } from '#shared/clock/clock.ts';
import {
  parseRecord,
  scanRecords,
  sortOut,
  type RecordProblems,
  type SortedOut,
} from '#shared/store/readable-records.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store, Write } from '#shared/store/store.ts';
import { channelIpCandidates, randomChannelMac, randomNicMac } from './channel-addresses.ts';
import {
  createInstanceClaims,
  IPS,
  MACS,
  NAMES,
  planNewClaims,
  refuseTakenMac,
  refuseTakenName,
} from './instance-claims.ts';
import { createDepartures, type Departures, planDeparture, planForgotten } from './departures.ts';
import { isOfNamed, planNamed } from './named-records.ts';
import { COUNTERS, JOB_NUMBERS, readCounter } from '../jobs/job-numbers.ts';
import { NETWORK_IPS } from './network-repository.ts';
import { placeInNetworks } from './place-in-networks.ts';

export const INSTANCES = 'instances';
const LAST_IP = 'last-channel-ip';
/** Addresses to try before reading which of the next ones are taken. */
const MAX_GUESSES = 8;
/** Addresses to look up then: even in a nearly full cluster, one of them is free. */
const NEXT_ADDRESSES = 256;

/** A record without the fields that only the store can assign, such as the channel's addresses. */
export type NewInstance = Omit<
  InstanceRecord,
  'channel' | 'createdAtMs' | 'namedAfterJob' | 'modifiedAtMs' | 'serialNo'
> & {
  readonly channelNicUuid: string;
};

/**
 * Stores instances by UUID. Names, channel addresses and MACs are unique in the cluster by claims.
 */
export interface InstanceRepository extends Departures {
  /**
   * Creates a record. A NIC in a network with the `ip` `pool` gets a free address.
   * @param options `drawnMacs`: MACs of its NICs that were drawn at random; a taken one is drawn
   * again
   * @throws AppError INSTANCE_EXISTS, CONFLICT (a given MAC is taken), NO_FREE_ADDRESS, NOT_FOUND
   * and BOOTENV_NOT_FOUND (a named object is gone)
   */
  create(
    instance: NewInstance,
    options?: { readonly drawnMacs: ReadonlySet<string> },
  ): Promise<InstanceRecord>;
  /** @throws AppError INSTANCE_NOT_FOUND */
  findByName(name: string): Promise<InstanceRecord>;
  /**
   * Returns the full name of the instance that a user means, as Ganeti does: by its full name, or
   * by its first labels (`web1` for `web1.example.com`).
   * @throws AppError INSTANCE_NOT_FOUND, VALIDATION (several)
   */
  expandName(typed: string): Promise<string>;
  findByUuid(uuid: string): Promise<InstanceRecord | undefined>;
  list(): Promise<readonly InstanceRecord[]>;
  /**
   * Reads the existing records of these instances, in this order, and lists the unreadable ones.
   * @throws AppError STORE_UNAVAILABLE
   */
  readSome(uuids: readonly string[]): Promise<SortedOut<InstanceRecord>>;
  /**
   * Changes a record, and repeats reading, changing and writing after each concurrent write. The
   * same commit adds and drops its claims, and notes a change of its node.
   * @param also returns further writes of the commit; runs again with each try
   * @throws StoreConflict of one of the further writes; AppError INSTANCE_NOT_FOUND,
   * INSTANCE_EXISTS, CONFLICT (a MAC is taken), NOT_FOUND and BOOTENV_NOT_FOUND (a newly named
   * object is gone)
   */
  update(
    uuid: string,
    change: (instance: InstanceRecord) => InstanceRecord,
    also?: () => Promise<readonly Write[]>,
  ): Promise<InstanceRecord>;
  /** @throws AppError INSTANCE_EXISTS */
  rename(uuid: string, newName: string): Promise<InstanceRecord>;
  remove(uuid: string): Promise<void>;
  /**
   * Removes the record of an instance that was lost with its node. Leftovers on other nodes may be
   * its only copy. Does nothing if the instance has moved to another node meanwhile.
   */
  forget(uuid: string, node: string): Promise<void>;
  /** @throws AppError with the reasons of `restore` */
  checkRestorable(instance: InstanceRecord): Promise<void>;
  /**
   * Restores a record that the store lost, and claims its names and addresses again. Replaces an
   * unreadable record. Does not check the objects that it names, which may be lost, too.
   * @throws AppError INSTANCE_EXISTS, CONFLICT: another instance has a claim now
   */
  restore(instance: InstanceRecord): Promise<InstanceRecord>;
  /** Drops the claims of an instance without a record. */
  dropClaims(uuid: string): Promise<void>;
}

export function noInstance(name: string): AppError {
  return new AppError('INSTANCE_NOT_FOUND', `there is no instance '${name}'`, {
    details: { name },
    hint: 'gnt-instance list shows the instances',
  });
}

/**
 * Returns which of the next addresses are taken. If all of them are, reads the slow list of all
 * taken addresses.
 */
async function findTaken(store: Store, tried: string): Promise<ReadonlySet<string>> {
  const next = channelIpCandidates(tried).take(NEXT_ADDRESSES).toArray();
  const found = await store.getSome(IPS, next);
  if (found.length < next.length) return new Set(found.map(({ id }) => id));
  return new Set(await store.ids(IPS));
}

export function createInstanceRepository(
  store: Store,
  clock: Clock,
  problems: RecordProblems,
): InstanceRepository {
  const findByUuid = async (uuid: string): Promise<InstanceRecord | undefined> => {
    const stored = await store.get(INSTANCES, uuid);
    return stored && parseRecord(instanceRecord, INSTANCES, stored);
  };

  const claims = createInstanceClaims(store, async (uuid) => {
    const found = await findByUuid(uuid).catch(() => undefined);
    return found?.name ?? uuid;
  });

  const findByName = async (name: string): Promise<InstanceRecord> => {
    // Not a valid name: do not look it up, because the store accepts only well-formed ids.
    const isName = instanceName.safeParse(name).success;
    const claim = isName ? await store.get(NAMES, name) : undefined;
    const found = typeof claim?.value === 'string' ? await findByUuid(claim.value) : undefined;
    if (found === undefined) {
      throw noInstance(name);
    }
    return found;
  };

  const expandName = async (typed: string): Promise<string> => {
    if (!instanceName.safeParse(typed).success) throw noInstance(typed);
    if ((await store.get(NAMES, typed)) !== undefined) return typed;
    const names = await store.ids(NAMES);
    const [meant, another] = names.filter((name) => name.startsWith(`${typed}.`)).sort();
    if (meant === undefined) throw noInstance(typed);
    if (another === undefined) return meant;
    throw new AppError('VALIDATION', `'${typed}' could be ${meant} or ${another}`, {
      details: { name: typed },
      hint: 'Give more of the name.',
    });
  };

  const commitChange = async (
    uuid: string,
    change: (instance: InstanceRecord) => InstanceRecord,
    also: () => Promise<readonly Write[]> = () => Promise.resolve([]),
  ): Promise<InstanceRecord> => {
    for (;;) {
      const stored = await store.get(INSTANCES, uuid);
      if (stored === undefined)
        throw new AppError('INSTANCE_NOT_FOUND', `there is no instance ${uuid}`);
      const before = parseRecord(instanceRecord, INSTANCES, stored);
      const changed = change(before);
      const after: InstanceRecord = {
        ...changed,
        nics: await placeInNetworks(store, changed, before.nics),
        modifiedAtMs: clock.now(),
        serialNo: before.serialNo + 1,
      };
      const extra = [
        ...(await claims.planChange(before, after)),
        ...(await planNamed(store, after, before)),
        ...(after.primaryNode === before.primaryNode
          ? []
          : planDeparture(uuid, before.primaryNode, after.primaryNode)),
        ...(await also()),
      ];
      try {
        await store.commit([
          { collection: INSTANCES, id: uuid, expected: stored.revision, value: after },
          ...extra,
        ]);
        return after;
      } catch (error) {
        refuseTakenName(error, after.name);
        refuseTakenMac(error, after);
        if (!(error instanceof StoreConflict)) throw error;
        await claims.refuseTakenAddress(error, changed);
        if (![INSTANCES, NETWORK_IPS].includes(error.collection) && !isOfNamed(error)) throw error;
      }
    }
  };

  const planRestore = async (instance: InstanceRecord): Promise<readonly Write[]> => {
    const { uuid, name } = instance;
    const stored = await store.get(INSTANCES, uuid);
    if (stored !== undefined && instanceRecord.safeParse(stored.value).success)
      throw new AppError('INSTANCE_EXISTS', `instance '${name}' (${uuid}) has a record`);
    const expected = stored?.revision ?? 'absent';
    return [
      ...(await claims.planReturn(instance)),
      { collection: INSTANCES, id: uuid, expected, value: instance },
    ];
  };

  const remove = async (
    uuid: string,
    also: () => Promise<readonly Write[]> = () => Promise.resolve([]),
    node?: string,
  ): Promise<void> => {
    for (;;) {
      const stored = await store.get(INSTANCES, uuid);
      if (stored === undefined) return;
      const record = parseRecord(instanceRecord, INSTANCES, stored);
      if (node !== undefined && record.primaryNode !== node) return;
      const drops = [...(await claims.planRemoval(record)), ...(await also())];
      try {
        // The claims must fit the record that was read: renaming it meanwhile changes them.
        await store.commit([
          { collection: INSTANCES, id: uuid, expected: stored.revision, value: undefined },
          ...drops,
        ]);
        return;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
      }
    }
  };

  return {
    findByName,
    expandName,
    findByUuid,
    readSome: async (uuids) =>
      sortOut(instanceRecord, INSTANCES, await store.getSome(INSTANCES, uuids)),
    checkRestorable: async (instance) => void (await planRestore(instance)),
    restore: async (instance) => {
      const { serialNo } = instance;
      const record = { ...instance, modifiedAtMs: clock.now(), serialNo: serialNo + 1 };
      for (;;) {
        try {
          await store.commit(await planRestore(record));
          return record;
        } catch (error) {
          // Concurrent write: plan again, which refuses a taken claim by its name.
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
    dropClaims: async (uuid) => {
      while ((await store.get(INSTANCES, uuid)) === undefined) {
        const drops = await claims.planAll(uuid);
        if (drops.length === 0) return;
        try {
          // If the record comes back meanwhile, it owns the claims again.
          const gone = {
            collection: INSTANCES,
            id: uuid,
            expected: 'absent',
            value: undefined,
          } as const;
          await store.commit([gone, ...drops]);
          return;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
        }
      }
    },
    list: async () => {
      const records = await scanRecords(store, INSTANCES, instanceRecord, problems);
      return records.toSorted((a, b) => a.name.localeCompare(b.name));
    },
    create: async (instance, { drawnMacs } = { drawnMacs: new Set<string>() }) => {
      const { channelNicUuid, ...rest } = instance;
      const drawn = new Set(drawnMacs);
      let { nics } = rest;
      const [counter, { last: namedAfterJob }] = await Promise.all([
        store.get(COUNTERS, LAST_IP),
        readCounter(store, JOB_NUMBERS),
      ]);
      // The next address is nearly always free: its claim in the commit is enough.
      let taken: ReadonlySet<string> = new Set();
      let refused = 0;
      const lastGiven = typeof counter?.value === 'string' ? counter.value : undefined;
      for (const ip of channelIpCandidates(lastGiven)) {
        if (taken.has(ip)) continue;
        const mac = randomChannelMac();
        const now = clock.now();
        const record: InstanceRecord = {
          ...rest,
          nics: await placeInNetworks(store, { ...rest, nics }, []),
          channel: { ip, mac, uuid: channelNicUuid },
          ...{ createdAtMs: now, namedAfterJob },
          modifiedAtMs: now,
          serialNo: 1,
        };
        const named = await planNamed(store, record);
        try {
          await store.commit([
            ...planNewClaims(record),
            ...named,
            { collection: INSTANCES, id: record.uuid, expected: 'absent', value: record },
            { collection: COUNTERS, id: LAST_IP, expected: 'any', value: ip },
          ]);
          return record;
        } catch (error) {
          if (!(error instanceof StoreConflict)) throw error;
          refuseTakenName(error, record.name);
          await claims.refuseTakenAddress(error, { nics });
          refused += 1;
          if (refused % MAX_GUESSES === 0) taken = await findTaken(store, ip);
          if (error.collection === MACS && drawn.has(error.id)) {
            const again = randomNicMac(error.id.slice(0, 8));
            drawn.add(again);
            nics = nics.map((nic) => (nic.mac === error.id ? { ...nic, mac: again } : nic));
          } else refuseTakenMac(error, record);
        }
      }
      throw new AppError(
        'NO_FREE_ADDRESS',
        'all 65,023 channel addresses of the cluster are taken',
        {
          hint: 'Remove instances that are not needed.',
        },
      );
    },
    update: (uuid, change, also) => commitChange(uuid, change, also),
    rename: async (uuid, newName) => {
      const { last: namedAfterJob } = await readCounter(store, JOB_NUMBERS);
      return commitChange(uuid, (instance) => ({ ...instance, name: newName, namedAfterJob }));
    },
    remove: (uuid) => remove(uuid),
    forget: (uuid, node) => remove(uuid, () => planForgotten(store, uuid), node),
    ...createDepartures(store),
  };
}
