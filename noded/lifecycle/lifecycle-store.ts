import { setTimeout as sleep } from 'node:timers/promises';
import type { LifecycleRecord } from '#shared/contract/lifecycle.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';

/** Until a store that was away is asked again. */
export const AGAIN_MS = 10_000;

/** The lifecycles in the records: what is known last gets there, however long the store is away. */
export class LifecycleStore {
  readonly #instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly #logger: Logger;
  readonly #busy = new WeakSet();

  constructor(instances: Pick<InstanceRepository, 'findByUuid' | 'update'>, logger: Logger) {
    this.#instances = instances;
    this.#logger = logger;
  }

  /** @param latest whose record may go on changing meanwhile; the last one is what is kept */
  async keep(uuid: string, latest: { readonly record: LifecycleRecord }): Promise<void> {
    if (this.#busy.has(latest)) return;
    this.#busy.add(latest);
    for (let written: LifecycleRecord | null = null; written !== latest.record;) {
      const { record } = latest;
      try {
        await this.#instances.update(uuid, (current) => ({ ...current, lifecycle: record }));
        written = record;
      } catch (error) {
        if (isAppError(error, 'INSTANCE_NOT_FOUND')) break;
        this.#warn(uuid, error);
        await sleep(AGAIN_MS, undefined, { ref: false });
      }
    }
    this.#busy.delete(latest);
  }

  /** What an earlier run left counts for nothing where this one has no lists. */
  async forgetFormer(uuid: string): Promise<void> {
    try {
      const instance = await this.#instances.findByUuid(uuid);
      if (instance?.lifecycle == null) return;
      await this.#instances.update(uuid, (current) => ({ ...current, lifecycle: null }));
    } catch (error) {
      this.#warn(uuid, error);
    }
  }

  /** It is not to be started again. */
  async putDown(uuid: string): Promise<void> {
    try {
      await this.#instances.update(uuid, (current) => ({ ...current, adminState: 'down' }));
    } catch (error) {
      this.#warn(uuid, error);
    }
  }

  #warn(uuid: string, error: unknown): void {
    this.#logger.warn('lifecycle.not-written', { uuid, err: error });
  }
}
