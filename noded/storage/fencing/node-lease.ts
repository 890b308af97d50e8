import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { pause } from '#shared/abort/until.ts';
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

/** Permission to start a machine with shared disks. */
export interface Entry extends Disposable {
  /** Aborted when another node has taken the instance. */
  readonly signal: AbortSignal;
}

/**
 * This node's right to write to shared disks, which it renews. Without renewal, the parent
 * processes of its machines (fence-script.ts) pause those with shared disks, so that another node
 * can take the instances.
 */
export interface OwnLease extends AsyncDisposable {
  /**
   * Waits for a valid lease before the machine of an instance is created. The node keeps it until
   * the result is disposed of or its signal aborts. The caller must read the record again
   * afterwards.
   * @throws AppError STORE_UNAVAILABLE, HOST_PREREQUISITE
   */
  enter(uuid: string): Promise<Entry>;
  /** Returns the seconds until machines are paused; null without a lease. */
  leftS(): number | null;
}

export interface OwnLeaseDependencies {
  readonly store: Pick<Store, 'get' | 'commit'>;
  readonly nodeName: string;
  /** The file that the machines' parent processes read. */
  readonly file: string;
  readonly ttlMs: number;
  /** Number of replicas that must confirm a renewal; undefined for none. */
  readonly replicas: number | undefined;
  /** Returns true if instances with shared disks may exist. */
  readonly isNeeded: () => Promise<boolean>;
  /** Ends the machine of a taken instance without another write, and detaches its disks. */
  readonly giveUp: (uuid: string) => Promise<void>;
  readonly logger: Logger;
}

/** The lease of a single-node cluster, where no other node can take an instance. */
export const lonelyLease: OwnLease = {
  enter: () =>
    Promise.resolve({ signal: new AbortController().signal, [Symbol.dispose]: () => undefined }),
  leftS: () => null,
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

/**
 * Renews the lease before the daemon adopts running machines. Paused machines resume, and those of
 * taken instances end.
 */
export async function startOwnLease(dependencies: OwnLeaseDependencies): Promise<OwnLease> {
  const lease = new StoredLease(dependencies);
  await lease.start();
  return lease;
}

/**
 * INVARIANTS: renewals run one at a time. The lease file is written only after a commit without
 * taken instances.
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
    // Added after the renewal, which waits for the end of all entries of a taken instance.
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
    while (await pause(intervalMs, signal, { ref: false })) await this.#tryRenew();
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
        // Another node took an instance, or an answer was lost.
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

  /** @returns false if another node wrote first */
  async #commit(): Promise<boolean> {
    const { store, nodeName: id, file, ttlMs, replicas } = this.#dependencies;
    const { renewals } = this.#record;
    // Other nodes use the longer time until the machines here use the shorter one.
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
      // After a lost answer the content of the store is unknown.
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

  /** Meanwhile no renewal takes place, and no paused machine resumes. */
  async #giveUp(uuid: string): Promise<void> {
    const entries = [...(this.#entries.get(uuid) ?? [])];
    for (const { abort } of entries) abort.abort(taken(uuid));
    await Promise.all(entries.map(({ ended }) => ended));
    await this.#dependencies.giveUp(uuid);
    this.#dependencies.logger.warn('instance.taken', { instance: uuid });
  }
}

/** Reads CLOCK_BOOTTIME, as the parent processes do: it includes the time of a suspended host. */
function readUptimeS(): number {
  return Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
}

function taken(uuid: string): AppError {
  return new AppError('CONFLICT', `another node took over instance ${uuid}`, {
    hint: 'This node did not renew its lease in time. gnt-instance info shows where the instance is.',
  });
}
