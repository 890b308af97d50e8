import nacl from 'tweetnacl';
import { othersTurn } from '../clock/turns.ts';
import { AppError, isAppError } from '../errors/app-error.ts';
import type { ReplayGuard, MarkedRecord } from './replay-guard.ts';
import { StampBehind, StoreConflict } from './store-conflict.ts';
import type { ListedRecord, Store, StoredRecord, Write } from './store.ts';

/** In bytes. */
export const CLUSTER_KEY_BYTES = nacl.secretbox.keyLength;

export function makeClusterKey(): Uint8Array {
  return nacl.randomBytes(CLUSTER_KEY_BYTES);
}

/** Keys of the cluster: two of them during a change of key. */
export interface KeyRing {
  readonly sealing: Uint8Array;
  /** Keys that records are opened with, the likeliest first. */
  readonly opening: readonly Uint8Array[];
}

export function ringOf(key: Uint8Array): KeyRing {
  return { sealing: key, opening: [key] };
}

export interface SealedStore extends Store {
  /**
   * Seals all records again that another key sealed.
   * @returns their number
   */
  reseal(signal: AbortSignal): Promise<number>;
  /** Resolves when pending writes are done: afterwards only the present key is in use. */
  settle(): Promise<void>;
}

/**
 * Claims, jobs and counters, whose old records do no harm. All other collections, also future ones,
 * are guarded: an old record could restore trust, reopen a service, or bring back a key or a
 * password.
 */
const UNGUARDED = new Set(['jobs', 'job-rings', 'counters', 'claim-name', 'claim-ip', 'claim-mac']);
/** Limit for a record that changes between each request and its answer. */
const MAX_READS = 10;
/** Limit for nodes that write to one collection at once and overtake each other. */
const MAX_COMMITS = 50;
/** No node's clock is ahead by more. A later stamp would raise all following ones for good. */
const FARTHEST_CLOCK_MS = 366 * 24 * 3_600_000;

interface Opened {
  readonly value: unknown;
  /** The stamp; 0 in records from before stamps. */
  readonly stamp: number;
  readonly key: Uint8Array;
}

/**
 * Creates a store whose values need the key: each is a secretbox (XSalsa20-Poly1305, random nonce)
 * in base64 over its collection, its id, the value and a growing stamp, so that a record cannot
 * replace another one, nor an older one a newer. Collections, ids and revisions stay readable.
 * Programs with write access to the underlying store can still delete records.
 * @param ring asked for each record, since keys may change
 * @param replayGuard marks of this node; without it, older records are accepted
 * @throws AppError STORE_KEY from `get` for a record of another key, RECORD_REPLAYED for one older
 * than its mark; in a list it is that record's problem
 */
export function createSealedStore(
  store: Store,
  ring: () => KeyRing,
  replayGuard?: ReplayGuard,
): SealedStore {
  const open = (collection: string, record: StoredRecord): Opened =>
    openRecord(collection, record, ring());
  const guardOf = (collection: string): ReplayGuard | undefined =>
    UNGUARDED.has(collection) ? undefined : replayGuard;

  /**
   * Notes marks only of lasting data: a mark of a write that a failover reverts would refuse the
   * remaining record for good.
   */
  const takeNotes = (): ((note: () => void) => void) => {
    const outlasts = store.acknowledgement?.();
    if (outlasts === undefined) return (note) => note();
    return (note) => void outlasts().then((isKept) => isKept && note());
  };

  const get = async (collection: string, id: string): Promise<StoredRecord | undefined> => {
    const guard = guardOf(collection);
    for (let read = 1; ; read += 1) {
      const asked = guard?.version ?? 0;
      const note = takeNotes();
      const record = await store.get(collection, id);
      if (record === undefined) return undefined;
      const { value, stamp } = open(collection, record);
      const judgement = guard?.judge({ collection, id, stamp }, asked) ?? 'current';
      if (judgement === 'current') {
        const mark = { collection, id, stamp };
        if (guard?.isNews(mark)) note(() => guard.note([mark]));
        return { ...record, value };
      }
      if (judgement === 'replayed' || read === MAX_READS) throw replayed(collection, id);
    }
  };

  const openListed = (
    collection: string,
    record: ListedRecord,
    judged: JudgedList,
  ): ListedRecord =>
    record.problem === undefined ? judged.take(record, () => open(collection, record)) : record;

  /**
   * A record may have documents of megabytes: opening a few in one turn would delay all other work.
   */
  const openSlice = async (
    collection: string,
    records: readonly ListedRecord[],
    judged: JudgedList,
  ): Promise<readonly ListedRecord[]> => {
    const opened: ListedRecord[] = [];
    for (const record of records) {
      opened.push(openListed(collection, record, judged));
      await othersTurn();
    }
    return opened;
  };

  const getSome = async (
    collection: string,
    ids: readonly string[],
  ): Promise<readonly ListedRecord[]> => {
    const guard = guardOf(collection);
    const judged = new JudgedList(collection, guard, guard?.version ?? 0);
    const note = takeNotes();
    const records = await store.getSome(collection, ids);
    const found = await openSlice(collection, records, judged);
    if (judged.hasNews) note(() => guard?.note(judged.current));
    return judged.isUnsure ? readAgain(collection, found) : found;
  };

  const list = async (collection: string): Promise<readonly ListedRecord[]> => {
    const guard = guardOf(collection);
    for (let read = 1; ; read += 1) {
      const asked = guard?.version ?? 0;
      const note = takeNotes();
      const records = await store.list(collection);
      const judged = new JudgedList(collection, guard, asked);
      const listed = records.map((record) => openListed(collection, record, judged));
      if (judged.isUnsure && read < MAX_READS) continue;
      if (judged.hasNews) note(() => guard?.note(judged.current));
      // An emptied store does not mean that each record was removed.
      if (guard !== undefined && records.length > 0) {
        const there = new Set(records.map(({ id }) => id));
        const gone = guard.knownIds(collection, asked).filter((id) => !there.has(id));
        const keys = gone.map((id) => ({ collection, id }));
        if (keys.length > 0) note(() => guard.noteGone(keys, asked));
      }
      return listed;
    }
  };

  const scan = async function* (collection: string): AsyncGenerator<readonly ListedRecord[]> {
    const guard = guardOf(collection);
    const begun = guard?.version ?? 0;
    const noteAll = takeNotes();
    const there = new Set<string>();
    const slices = store.scan(collection)[Symbol.asyncIterator]();
    for (;;) {
      const asked = guard?.version ?? 0;
      const note = takeNotes();
      const next = await slices.next();
      if (next.done === true) break;
      const judged = new JudgedList(collection, guard, asked);
      for (const { id } of next.value) there.add(id);
      const slice = await openSlice(collection, next.value, judged);
      if (judged.hasNews) note(() => guard?.note(judged.current));
      yield judged.isUnsure ? await readAgain(collection, slice) : slice;
    }
    if (guard === undefined || there.size === 0) return;
    const gone = guard.knownIds(collection, begun).filter((id) => !there.has(id));
    const keys = gone.map((id) => ({ collection, id }));
    if (keys.length > 0) noteAll(() => guard.noteGone(keys, begun));
  };

  /** Reads records again that changed since the request. */
  const readAgain = async (
    collection: string,
    slice: readonly ListedRecord[],
  ): Promise<readonly ListedRecord[]> => {
    const again: ListedRecord[] = [];
    for (const record of slice) {
      if (record.problem === undefined) again.push(record);
      else {
        try {
          const found = await get(collection, record.id);
          if (found !== undefined) again.push(found);
        } catch (error) {
          if (!isAppError(error) || error.code === 'STORE_UNAVAILABLE') throw error;
          again.push({ ...record, problem: error.message });
        }
      }
    }
    return again;
  };

  const resealOne = async (collection: string, record: StoredRecord): Promise<boolean> => {
    const { sealing } = ring();
    const { value, stamp, key } = open(collection, record);
    if (key === sealing) return false;
    const { id, revision } = record;
    const sealed = sealValue({ collection, id, value }, stamp, sealing);
    try {
      await store.commit([{ collection, id, expected: revision, value: sealed }]);
    } catch (error) {
      // Another writer has sealed it with the present key.
      if (!(error instanceof StoreConflict)) throw error;
    }
    return true;
  };

  const underWay = new Set<Promise<unknown>>();
  const commitSealed = async (
    writes: readonly Write[],
    stamp: number,
  ): Promise<readonly number[]> => {
    const { sealing } = ring();
    const committing = store.commit(
      writes.map((write) => ({
        ...write,
        ...(write.value !== undefined && { value: sealValue(write, stamp, sealing) }),
        ...(guardOf(write.collection) && { stamp }),
      })),
    );
    underWay.add(committing);
    try {
      return await committing;
    } finally {
      underWay.delete(committing);
    }
  };

  const commit = async (writes: readonly Write[]): Promise<readonly number[]> => {
    for (let attempt = 1; ; attempt += 1) {
      const asked = replayGuard?.version ?? 0;
      const stamp = replayGuard?.nextStamp() ?? Date.now();
      try {
        const revisions = await commitSealed(writes, stamp);
        const guarded = writes.filter(({ collection }) => guardOf(collection) !== undefined);
        const isGone = ({ value }: Write): boolean => value === undefined;
        replayGuard?.note(
          guarded.filter((write) => !isGone(write)).map((key) => ({ ...key, stamp })),
        );
        replayGuard?.noteGone(guarded.filter(isGone), asked);
        return revisions;
      } catch (error) {
        if (!(error instanceof StampBehind)) throw error;
        const { collection, newest } = error;
        if (!(newest < Date.now() + FARTHEST_CLOCK_MS)) throw stampsRaised(collection);
        if (attempt === MAX_COMMITS) throw new StoreConflict(collection, writes[0]?.id ?? '');
        replayGuard?.raiseStamps(newest);
      }
    }
  };

  return {
    get,
    getSome,
    list,
    commit,
    reseal: async (signal) => {
      let count = 0;
      for (const collection of (await store.collections?.()) ?? []) {
        for (const record of await store.list(collection)) {
          signal.throwIfAborted();
          // A record that does not open stays as it is.
          const isMade = await resealOne(collection, record).catch((error: unknown) => {
            if (isAppError(error, 'STORE_KEY')) return false;
            throw error;
          });
          if (isMade) count += 1;
        }
      }
      return count;
    },
    settle: async () => {
      await Promise.allSettled(underWay);
    },
    scan,
    ids: (collection) => store.ids(collection),
    watch: (collection, onChanges) => store.watch(collection, onChanges),
    ...(store.risks && { risks: store.risks.bind(store) }),
    close: async () => {
      await store.close();
      replayGuard?.close();
    },
  };
}

class JudgedList {
  readonly current: MarkedRecord[] = [];
  isUnsure = false;
  hasNews = false;
  readonly #collection: string;
  readonly #guard: ReplayGuard | undefined;
  readonly #asked: number;

  constructor(collection: string, guard: ReplayGuard | undefined, asked: number) {
    this.#collection = collection;
    this.#guard = guard;
    this.#asked = asked;
  }

  take({ id, revision }: StoredRecord, open: () => Opened): ListedRecord {
    const collection = this.#collection;
    try {
      const { value, stamp } = open();
      const judgement = this.#guard?.judge({ collection, id, stamp }, this.#asked) ?? 'current';
      if (judgement === 'unsure') this.isUnsure = true;
      if (judgement !== 'current') throw replayed(collection, id);
      const mark = { collection, id, stamp };
      if (this.#guard !== undefined) this.current.push(mark);
      if (this.#guard?.isNews(mark)) this.hasNews = true;
      return { id, revision, value };
    } catch (error) {
      if (!isAppError(error)) throw error;
      return { id, revision, value: undefined, problem: error.message };
    }
  }
}

function sealValue(
  write: { readonly collection: string; readonly id: string; readonly value: unknown },
  stamp: number,
  key: Uint8Array,
): string {
  const plain = Buffer.from(JSON.stringify([write.collection, write.id, write.value, stamp]));
  const nonce = nacl.randomBytes(nacl.secretbox.nonceLength);
  return Buffer.concat([nonce, nacl.secretbox(plain, nonce, key)]).toString('base64');
}

function openRecord(collection: string, { id, value }: StoredRecord, ring: KeyRing): Opened {
  const sealed = Buffer.from(typeof value === 'string' ? value : '', 'base64');
  const nonce = sealed.subarray(0, nacl.secretbox.nonceLength);
  if (nonce.length === nacl.secretbox.nonceLength) {
    for (const key of ring.opening) {
      const plain = nacl.secretbox.open(sealed.subarray(nonce.length), nonce, key);
      if (plain === null) continue;
      // Only the key's owner can have made it, so the shape is ours.
      const made = JSON.parse(Buffer.from(plain).toString()) as unknown[];
      const [madeFor, madeForId, opened, stamp] = made;
      if (madeFor === collection && madeForId === id)
        return { value: opened, stamp: typeof stamp === 'number' ? stamp : 0, key };
    }
  }
  throw new AppError(
    'STORE_KEY',
    `the record ${collection}/${id} is not sealed with this cluster key`,
    {
      details: { collection, id },
      hint: 'cluster.key must be the same on all nodes of a cluster. If it is, another program wrote to the store.',
    },
  );
}

function stampsRaised(collection: string): AppError {
  return new AppError(
    'STORE_KEY',
    `the newest stamp of ${collection} in the store is implausible: it is from another year`,
    {
      details: { collection },
      hint: `The clock of a node is wrong, or another program wrote to the store. Correct the clocks, then delete the key f:${collection} of this store in Redis.`,
    },
  );
}

function replayed(collection: string, id: string): AppError {
  return new AppError(
    'RECORD_REPLAYED',
    `the record ${collection}/${id} is older than the version that this node knows`,
    {
      details: { collection, id },
      hint: 'The store contains an old version. If you restored a backup, stop gnt-noded on each node and run there: gnt-cluster accept-records',
    },
  );
}
