import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeLease, type NodeLease } from '#shared/contract/node-lease.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { SerialQueue } from '#shared/serial/serial-queue.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';
import type { Store } from '#shared/store/store.ts';
import { readBootId } from '../../host/process-identity.ts';
import { formatLease, planInterval, planTimes, type LeaseTimes } from './plan-lease.ts';

export const NODE_LEASES = 'node-leases';

/** Somebody is about to start a machine with shared disks. */
export interface Entry extends Disposable {
  /** Aborted when another node has taken the instance. */
  readonly signal: AbortSignal;
}

/**
 * This node's right to write shared disks, which it has for a time and renews. While it is not
 * renewed, its machines with such disks are paused, by parents of their own (fence-script.ts), so
 * that another node may take their instances.
 */
export interface OwnLease extends AsyncDisposable {
  /**
   * Before the machine of an instance is made: the right is there, and stays with this node until
   * the answer is disposed of, or its signal says otherwise. What was read of the instance before
   * has to be read again then.
   * @throws AppError STORE_UNAVAILABLE, HOST_PREREQUISITE
   */
  enter(uuid: string): Promise<Entry>;
  /** Seconds until machines are paused; null where there is no lease. */
  leftS(): number | null;
}

export interface OwnLeaseDependencies {
  readonly store: Pick<Store, 'get' | 'commit'>;
  readonly nodeName: string;
  /** Where the parents of machines read it. */
  readonly file: string;
  readonly ttlMs: number;
  /** How many replicas have a renewal before it counts; undefined: none has to. */
  readonly replicas: number | undefined;
  /** Whether there can be instances with shared disks. */
  readonly isNeeded: () => Promise<boolean>;
  /**
   * Ends the machine of an instance that was taken, without another write, and forgets its disks.
   */
  readonly giveUp: (uuid: string) => Promise<void>;
  readonly logger: Logger;
}

/** For a node that is a cluster by itself: nobody takes anything. */
export const lonelyLease: OwnLease = {
  enter: () =>
    Promise.resolve({ signal: new AbortController().signal, [Symbol.dispose]: () => undefined }),
  leftS: () => null,
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

/**
 * The first renewal, before machines of a former daemon are spoken to: those that are paused go on,
 * those that were taken end.
 */
export async function startOwnLease(dependencies: OwnLeaseDependencies): Promise<OwnLease> {
  const lease = new StoredLease(dependencies);
  await lease.start();
  return lease;
}

/**
 * INVARIANTS: one renewal at a time; what is written for the parents of machines follows a commit
 * that found nothing taken, or everything that was taken gone.
 */
class StoredLease implements OwnLease {
  readonly #dependencies: OwnLeaseDependencies;
  readonly #queue = new SerialQueue<string>();
  readonly #entries = new Map<
    string,
    Set<{ readonly abort: AbortController; ended: Promise<void> }>
  >();
  readonly #end = new AbortController();
  #times: LeaseTimes | undefined;
  #revision: number | 'absent' | undefined;
  #record: NodeLease;
  #renewing: Promise<void> | undefined;
  #isTold = false;

  constructor(dependencies: OwnLeaseDependencies) {
    this.#dependencies = dependencies;
    this.#record = { schema: 1, ttlMs: dependencies.ttlMs, renewals: 0, taken: [] };
  }

  async start(): Promise<void> {
    await this.#tryRenew();
    this.#renewing = this.#renewFromNowOn();
  }

  async enter(uuid: string): Promise<Entry> {
    if ((this.leftS() ?? 0) <= planInterval(this.#dependencies.ttlMs) / 1000) await this.#renew();
    // Not before: to give up what was taken waits for those who have entered.
    const abort = new AbortController();
    const ended = Promise.withResolvers<void>();
    const entry = { abort, ended: ended.promise };
    const entries = this.#entries.get(uuid) ?? new Set();
    this.#entries.set(uuid, entries.add(entry));
    const leave = (): void => {
      entries.delete(entry);
      if (entries.size === 0) this.#entries.delete(uuid);
      ended.resolve();
    };
    return { signal: abort.signal, [Symbol.dispose]: leave };
  }

  leftS(): number | null {
    return this.#times === undefined ? null : this.#times.pauseAtS - readUptimeS();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#renewing;
  }

  async #renewFromNowOn(): Promise<void> {
    const { signal } = this.#end;
    const intervalMs = planInterval(this.#dependencies.ttlMs);
    for (;;) {
      await sleep(intervalMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await this.#tryRenew();
    }
  }

  async #tryRenew(): Promise<void> {
    const { isNeeded, logger } = this.#dependencies;
    try {
      if (!(await isNeeded())) return;
      await this.#renew();
      if (this.#isTold) logger.warn('lease.renewed', {});
      this.#isTold = false;
    } catch (error) {
      const level = this.#isTold ? 'debug' : 'error';
      this.#isTold = true;
      logger[level]('lease.not-renewed', { leftS: this.leftS(), err: error });
    }
  }

  #renew(): Promise<void> {
    return this.#queue.run('lease', async () => {
      for (;;) {
        if (this.#revision === undefined) await this.#read();
        for (const uuid of this.#record.taken) await this.#giveUp(uuid);
        if (await this.#commit()) return;
        // Somebody took an instance, or an answer was lost.
        this.#revision = undefined;
      }
    });
  }

  async #read(): Promise<void> {
    const { store, nodeName } = this.#dependencies;
    const stored = await store.get(NODE_LEASES, nodeName);
    this.#revision = stored?.revision ?? 'absent';
    if (stored !== undefined) this.#record = parseRecord(nodeLease, NODE_LEASES, stored);
  }

  /** @returns false where somebody came between */
  async #commit(): Promise<boolean> {
    const { store, nodeName: id, file, ttlMs, replicas } = this.#dependencies;
    const { renewals } = this.#record;
    // A time that was longer counts for others until machines here go by the shorter one.
    const told = Math.max(ttlMs, this.#record.ttlMs);
    const next: NodeLease = {
      ...{ schema: 1, ttlMs: told, renewals: renewals + 1, taken: [] },
      ...(replicas !== undefined && { replicas }),
    };
    const expected = this.#revision ?? 'absent';
    const askedAtS = readUptimeS();
    try {
      const write = { collection: NODE_LEASES, id, expected, value: next };
      [this.#revision] = await store.commit([write]);
    } catch (error) {
      // Of a commit whose answer was lost nobody knows what is in the store.
      this.#revision = undefined;
      if (error instanceof StoreConflict) return false;
      throw error;
    }
    const times = planTimes(askedAtS, ttlMs);
    this.#record = next;
    await writeFile(`${file}.new`, formatLease(readBootId(), times), { mode: 0o600 });
    await rename(`${file}.new`, file);
    this.#times = times;
    this.#record = { ...next, ttlMs };
    return true;
  }

  /** While it is under way, nothing is renewed, and no machine that was paused goes on. */
  async #giveUp(uuid: string): Promise<void> {
    const entries = [...(this.#entries.get(uuid) ?? [])];
    for (const { abort } of entries) abort.abort(taken(uuid));
    await Promise.all(entries.map(({ ended }) => ended));
    await this.#dependencies.giveUp(uuid);
    this.#dependencies.logger.warn('instance.taken', { instance: uuid });
  }
}

/** CLOCK_BOOTTIME, as the parents of machines read it: it goes on while a host is suspended. */
function readUptimeS(): number {
  return Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
}

function taken(uuid: string): AppError {
  return new AppError('CONFLICT', `another node took over instance ${uuid}`, {
    hint: 'This node did not renew its lease in time. gnt-instance info shows where the instance is.',
  });
}
