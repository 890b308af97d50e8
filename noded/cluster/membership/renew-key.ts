import { z } from 'zod';
import { pause } from '#shared/abort/until.ts';
import type { CryptoProgress, KeyStep } from '#shared/contract/api.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { type ClusterKeys, fingerprintOf } from '#shared/store/cluster-keys.ts';
import { parseRecord } from '#shared/store/readable-records.ts';
import { makeClusterKey, type SealedStore } from '#shared/store/sealed-store.ts';
import { StoreConflict } from '#shared/store/store-conflict.ts';

const COLLECTION = 'renewals';
const ID = 'cluster-key';
const RETRY_MS = 5000;

/**
 * In this order. The renewal can be abandoned during `learn`, and must be completed from `seal` on.
 */
const phase = z.enum(['learn', 'seal', 'forget']);
const renewalRecord = z.strictObject({
  coordinator: z.string(),
  phase,
  fingerprint: z.string(),
  skipped: z.array(z.string()),
});
type RenewalRecord = z.infer<typeof renewalRecord>;

export interface KeyRenewalDependencies {
  readonly nodeName: string;
  readonly store: SealedStore;
  readonly keys: ClusterKeys;
  readonly nodeNames: () => Promise<readonly string[]>;
  readonly answers: (node: string) => Promise<boolean>;
  /**
   * Makes another node take a step.
   * @throws AppError NODE_UNREACHABLE, and the other node's error
   */
  readonly tell: (node: string, step: KeyStep) => Promise<void>;
  readonly logger: Logger;
  readonly retryMs?: number;
}

export interface Renewed {
  readonly nodes: readonly string[];
  readonly skipped: readonly string[];
}

/**
 * Replaces the cluster key while the nodes run.
 *
 * INVARIANTS: every step is idempotent, and a record in the store has the next one. No node seals
 * with the new key before all read with it. No node forgets the old key before all records are
 * sealed with the new one. A node that is not skipped takes every step.
 */
export class KeyRenewal {
  readonly #dependencies: KeyRenewalDependencies;
  readonly #stopping = new AbortController();
  #running: Promise<Renewed> | undefined;
  #resuming: Promise<void> | undefined;
  #renewals = 0;
  #done: CryptoProgress['done'] = [];

  constructor(dependencies: KeyRenewalDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Begins or continues a renewal.
   * @param skip silent nodes to leave out, which must join again
   * @throws AppError NODE_UNREACHABLE that names silent nodes; NODE_NOT_FOUND; CONFLICT
   */
  async renew(skip: readonly string[]): Promise<Renewed> {
    if (this.#isRunning())
      throw new AppError('CONFLICT', 'the cluster key is already being renewed');
    try {
      return await this.#run(() => this.#renew(skip));
    } catch (error) {
      this.resume();
      throw error;
    }
  }

  /** Continues a renewal of this node after a restart, until it is done. */
  resume(): void {
    this.#resuming ??= this.#resume().finally(() => {
      this.#resuming = undefined;
    });
  }

  /** Returns the completed steps of this daemon's last renewal, by node. */
  progress(): CryptoProgress {
    return { renewals: this.#renewals, done: [...this.#done] };
  }

  /** Returns the renewing node and the phase in words; null without a renewal. */
  async describe(): Promise<string | null> {
    const found = await this.#load();
    if (found === undefined) return null;
    const { coordinator, skipped } = found.record;
    const without = skipped.length === 0 ? '' : `, without ${skipped.join(', ')}`;
    return `${coordinator} renews the cluster key (${found.record.phase})${without}`;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new AppError('JOB_INTERRUPTED', 'gnt-noded is stopping'));
    await Promise.allSettled([this.#running, this.#resuming]);
  }

  #isRunning(): boolean {
    return this.#running !== undefined;
  }

  async #run(work: () => Promise<Renewed>): Promise<Renewed> {
    this.#running = work();
    try {
      return await this.#running;
    } finally {
      this.#running = undefined;
    }
  }

  async #renew(skip: readonly string[]): Promise<Renewed> {
    await this.#refuseBadSkips(skip);
    const found = await this.#load();
    const record = found === undefined ? undefined : await this.#takeOver(found.record);
    const skipped = [...new Set([...(record?.skipped ?? []), ...skip])];
    await this.#refuseSilent(skipped);
    const begun = record ?? (await this.#begin(skipped));
    const current = { ...begun, coordinator: this.#dependencies.nodeName, skipped };
    await this.#save(current);
    return this.#carryOut(current);
  }

  /** Continues the renewal of a removed node. */
  async #takeOver(record: RenewalRecord): Promise<RenewalRecord | undefined> {
    const { nodeName, nodeNames, keys } = this.#dependencies;
    const { coordinator, fingerprint } = record;
    if (coordinator !== nodeName && (await nodeNames()).includes(coordinator)) {
      throw new AppError('CONFLICT', `node '${coordinator}' renews the cluster key`, {
        details: { node: coordinator },
        hint: `The renewal continues when that node runs. If the node is gone for good: gnt-node remove ${coordinator}, then repeat the command.`,
      });
    }
    const known = [keys.ring().sealing, ...(keys.next ? [keys.next] : [])];
    if (known.some((key) => fingerprintOf(key) === fingerprint)) return record;
    // No node seals with it yet: start again.
    if (record.phase === 'learn') return undefined;
    throw new AppError(
      'STORE_KEY',
      'the cluster key is being renewed, and this node does not have the new key',
      {
        hint: 'Run the command on another node.',
      },
    );
  }

  async #begin(skipped: readonly string[]): Promise<RenewalRecord> {
    const { keys, nodeName } = this.#dependencies;
    const key = makeClusterKey();
    await keys.learn(key);
    return {
      coordinator: nodeName,
      phase: 'learn',
      fingerprint: fingerprintOf(key),
      skipped: [...skipped],
    };
  }

  async #carryOut(record: RenewalRecord): Promise<Renewed> {
    const { keys, store, logger, nodeName } = this.#dependencies;
    const { signal } = this.#stopping;
    this.#renewals += 1;
    this.#done = [{ step: 'learn', node: nodeName }];
    const isNew = (key: Uint8Array | undefined): key is Uint8Array =>
      key !== undefined && fingerprintOf(key) === record.fingerprint;
    const key = [keys.ring().sealing, keys.next].find(isNew);
    if (key === undefined)
      throw new AppError('STORE_KEY', 'this node does not have the new cluster key');
    const encoded = Buffer.from(key).toString('base64');
    let current = record;
    if (current.phase === 'learn') {
      await this.#tellAll(current, { step: 'learn', key: encoded });
      current = await this.#save({ ...current, phase: 'seal' });
    }
    if (current.phase === 'seal') {
      await keys.sealWith(key);
      await store.settle();
      this.#note('seal', nodeName);
      let told: readonly string[];
      do {
        told = await this.#tellAll(current, { step: 'seal', key: encoded });
        const count = await store.reseal(signal);
        logger.info('cluster-key.records-sealed', { records: count });
        this.#note('reseal', nodeName);
        // A node that joined meanwhile has sealed with the old key.
      } while ((await this.#others(current.skipped)).some((node) => !told.includes(node)));
      current = await this.#save({ ...current, phase: 'forget' });
    }
    const nodes = await this.#tellAll(current, {
      step: 'forget',
      fingerprint: current.fingerprint,
    });
    await keys.forgetOthers(current.fingerprint);
    this.#note('forget', nodeName);
    await store.commit([{ collection: COLLECTION, id: ID, expected: 'any', value: undefined }]);
    logger.info('cluster-key.renewed', { nodes, skipped: current.skipped });
    return { nodes: [this.#dependencies.nodeName, ...nodes].sort(), skipped: current.skipped };
  }

  /** Reads the nodes at each step, because one may be removed meanwhile. */
  async #tellAll({ skipped }: RenewalRecord, step: KeyStep): Promise<readonly string[]> {
    const nodes = await this.#others(skipped);
    for (const node of nodes) {
      this.#stopping.signal.throwIfAborted();
      await this.#dependencies.tell(node, step);
      this.#note(step.step, node);
    }
    return nodes;
  }

  /** A repeated step is noted once. */
  #note(step: CryptoProgress['done'][number]['step'], node: string): void {
    if (!this.#done.some((one) => one.step === step && one.node === node))
      this.#done.push({ step, node });
  }

  async #others(skipped: readonly string[]): Promise<readonly string[]> {
    const { nodeName, nodeNames } = this.#dependencies;
    return (await nodeNames()).filter((node) => node !== nodeName && !skipped.includes(node));
  }

  async #refuseSilent(skipped: readonly string[]): Promise<void> {
    const others = await this.#others(skipped);
    const answers = await Promise.all(others.map((node) => this.#dependencies.answers(node)));
    const silent = others.filter((_, index) => answers[index] !== true);
    if (silent.length === 0) return;
    throw new AppError('NODE_UNREACHABLE', `these nodes do not answer: ${silent.join(', ')}`, {
      details: { nodes: silent },
      hint: `Start them, or leave them out with --skip ${silent.join(',')}; they can join again later with the new key.`,
    });
  }

  async #refuseBadSkips(skip: readonly string[]): Promise<void> {
    const { nodeName, nodeNames, answers } = this.#dependencies;
    const names = await nodeNames();
    for (const node of skip) {
      if (!names.includes(node))
        throw new AppError('NODE_NOT_FOUND', `there is no node '${node}'`, {
          details: { node },
          hint: `The nodes are ${names.join(', ')}`,
        });
      if (node === nodeName || (await answers(node)))
        throw new AppError('CONFLICT', `node '${node}' answers and cannot be skipped`, {
          details: { node },
          hint: 'Skip only nodes that do not answer.',
        });
    }
  }

  async #resume(): Promise<void> {
    const { nodeName, logger, retryMs = RETRY_MS } = this.#dependencies;
    const { signal } = this.#stopping;
    while (!signal.aborted && !this.#isRunning()) {
      try {
        const found = await this.#load();
        if (found?.record.coordinator !== nodeName || this.#isRunning()) return;
        await this.#run(() => this.#carryOut(found.record));
        return;
      } catch (error) {
        logger.warn('cluster-key.not-renewed-yet', { reason: messageOf(error) });
        if (!isAppError(error)) return;
      }
      await pause(retryMs, signal, { ref: false });
    }
  }

  async #load(): Promise<
    { readonly record: RenewalRecord; readonly revision: number } | undefined
  > {
    const stored = await this.#dependencies.store.get(COLLECTION, ID);
    if (stored === undefined) return undefined;
    return { record: parseRecord(renewalRecord, COLLECTION, stored), revision: stored.revision };
  }

  async #save(record: RenewalRecord): Promise<RenewalRecord> {
    const found = await this.#load();
    try {
      await this.#dependencies.store.commit([
        { collection: COLLECTION, id: ID, expected: found?.revision ?? 'absent', value: record },
      ]);
      return record;
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
      throw new AppError('CONFLICT', 'another node renews the cluster key', { cause: error });
    }
  }
}
