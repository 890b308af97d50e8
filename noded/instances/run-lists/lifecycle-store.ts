import { setTimeout as sleep } from 'node:timers/promises';
import type { LifecycleRecord } from '#shared/contract/lifecycle.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';

/** Pause before the next attempt while the store is unavailable. */
export const AGAIN_MS = 10_000;
/**
 * Pause between two writes for an instance. A new state or a started script is written at once;
 * metad limits those to a few per second.
 */
const PAUSE_MS = 200;

interface Latest {
  readonly record: LifecycleRecord | null;
}

/**
 * Writes lifecycles into the records. The last state is written however long the store is
 * unavailable.
 */
export class LifecycleStore {
  readonly #instances: Pick<InstanceRepository, 'findByUuid' | 'update'>;
  readonly #logger: Logger;
  readonly #pauseMs: number;
  readonly #againMs: number;
  /** Source of the state being written, by instance. */
  readonly #latest = new Map<string, Latest>();
  /** Present pause by instance, with the record written before it. */
  readonly #pauses = new Map<string, { readonly behind: LifecycleRecord | null; end(): void }>();

  constructor(
    instances: Pick<InstanceRepository, 'findByUuid' | 'update'>,
    logger: Logger,
    { pauseMs = PAUSE_MS, againMs = AGAIN_MS } = {},
  ) {
    this.#instances = instances;
    this.#logger = logger;
    this.#pauseMs = pauseMs;
    this.#againMs = againMs;
  }

  /**
   * Writes the last state of a record.
   * @param latest its record may change meanwhile; replaces an earlier `latest` of the instance
   */
  async keep(uuid: string, latest: Latest): Promise<void> {
    const isBusy = this.#latest.has(uuid);
    this.#latest.set(uuid, latest);
    const pause = this.#pauses.get(uuid);
    if (pause !== undefined && isNews(pause.behind, latest.record)) pause.end();
    if (isBusy) return;
    for (let written: LifecycleRecord | null | undefined; ;) {
      const record = this.#latest.get(uuid)?.record ?? null;
      if (record === written) break;
      try {
        await this.#write(uuid, record);
        written = record;
        const now = this.#latest.get(uuid)?.record ?? null;
        if (!isNews(record, now)) await this.#pause(uuid, record);
      } catch (error) {
        if (isAppError(error, 'INSTANCE_NOT_FOUND')) break;
        this.#warn(uuid, error);
        await sleep(this.#againMs, undefined, { ref: false });
      }
    }
    this.#latest.delete(uuid);
  }

  async #pause(uuid: string, behind: LifecycleRecord | null): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#pauseMs).unref();
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.#pauses.set(uuid, { behind, end });
    });
    this.#pauses.delete(uuid);
  }

  /** Removes the lifecycle of an earlier run. */
  async forgetFormer(uuid: string): Promise<void> {
    await this.keep(uuid, { record: null });
  }

  /** Prevents another start. */
  async putDown(uuid: string): Promise<void> {
    try {
      await this.#instances.update(uuid, (current) => ({ ...current, adminState: 'down' }));
    } catch (error) {
      this.#warn(uuid, error);
    }
  }

  async #write(uuid: string, lifecycle: LifecycleRecord | null): Promise<void> {
    if (lifecycle === null) {
      const instance = await this.#instances.findByUuid(uuid);
      if (instance?.lifecycle == null) return;
    }
    await this.#instances.update(uuid, (current) => ({ ...current, lifecycle }));
  }

  #warn(uuid: string, error: unknown): void {
    this.#logger.warn('lifecycle.not-written', { uuid, err: error });
  }
}

/** Returns whether the change would be lost if both daemons crashed now. */
function isNews(before: LifecycleRecord | null, after: LifecycleRecord | null): boolean {
  if (before?.state !== after?.state) return true;
  return after?.exitStatus === null && after.script !== before?.script;
}
