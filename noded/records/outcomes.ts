import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { installsSystem, LOCAL_BOOT_ENV } from '#shared/contract/boot-objects.ts';
import { installChanges, installRecord, type InstanceRecord } from '#shared/contract/instance.ts';
import { jobRecord, type JobRecord } from '#shared/contract/job.ts';
import { isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { syncPath, writeDurably } from '#shared/files/durable.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import { BrokenKey } from '#shared/store/redis-broken-key.ts';
import type { JobRepository } from '../jobs/job-repository.ts';
import { beginRemoval, failInstall } from './install-states.ts';
import type { InstanceRepository } from './instance-repository.ts';

/** How an installation ended, and what of its instance changes with its success. */
const installOutcome = z.object({
  installState: z.enum(['installed', 'failed']),
  install: installRecord,
  changes: installChanges.optional(),
});
export type InstallOutcome = z.infer<typeof installOutcome>;

/** Since when an instance is being removed, and by which job. */
const begunRemoval = z.object({ jobId: z.number(), beganAtMs: z.number() });
export type BegunRemoval = z.infer<typeof begunRemoval>;

/** What a file holds. One that cannot be read stays where it is, and is told at each start. */
const written = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('job'), job: jobRecord }),
  z.object({ kind: z.literal('install'), uuid: z.uuid(), outcome: installOutcome }),
  z.object({ kind: z.literal('begun-removal'), uuid: z.uuid(), begun: begunRemoval }),
  z.object({ kind: z.literal('removal'), uuid: z.uuid() }),
]);
type Written = z.infer<typeof written>;

/**
 * The ends of jobs, of installations and of instances: what happened cannot be undone, so it is
 * written whatever becomes of the store or of this daemon. Until the store takes it, it is in a
 * file of the node, synced, which the next daemon finds.
 *
 * INVARIANT: one file for each job and instance at most, and no more jobs than were running when
 * the store went away, since none is accepted without it.
 */
export interface Outcomes {
  /** Resolves when the end of a job is in the store, or on this node's disk. */
  endJob(job: JobRecord): Promise<void>;
  /** The end of a job that the store has not got yet. */
  unwrittenJob(id: number): JobRecord | undefined;
  /** Resolves when the store has it. @throws AppError STORE_UNAVAILABLE when the wait was ended */
  endInstall(uuid: string, outcome: InstallOutcome): Promise<InstanceRecord>;
  /** The same, and resolves when it is in the store, or on this node's disk. */
  keepInstall(uuid: string, outcome: InstallOutcome): Promise<void>;
  /**
   * The disks of an instance go, and the store has no room to say so, though it may have some once
   * they are gone. Until it has, this daemon knows, and its disk if that has room. Resolves at
   * once.
   */
  noteRemoval(uuid: string, begun: BegunRemoval): Promise<void>;
  /** Its disks are gone. Resolves when its record is, too. @throws AppError as `endInstall` */
  endRemoval(uuid: string): Promise<void>;
  /** What was noted, and is not in the store yet. */
  removalOf(uuid: string): BegunRemoval | undefined;
  /**
   * Writes what a daemon before this one could not. What the store refuses, since the record that
   * it is for cannot be read, is logged and stays.
   * @throws AppError STORE_UNAVAILABLE, DISK_FULL
   */
  resume(): Promise<void>;
}

export interface OutcomesOptions {
  readonly dir: string;
  readonly jobs: JobRepository;
  readonly instances: InstanceRepository;
  /** Ends the waits for the store; what was not written then is on the disk. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

const WRITE_AGAIN_MS = 500;

export function createOutcomes(options: OutcomesOptions): Outcomes {
  return new KeptOutcomes(options);
}

class KeptOutcomes implements Outcomes {
  readonly #options: OutcomesOptions;
  readonly #jobs = new Map<number, JobRecord>();
  readonly #removals = new Map<string, BegunRemoval>();

  constructor(options: OutcomesOptions) {
    this.#options = options;
  }

  unwrittenJob(id: number): JobRecord | undefined {
    return this.#jobs.get(id);
  }

  async endJob(job: JobRecord): Promise<void> {
    this.#jobs.set(job.id, job);
    const { jobs } = this.#options;
    await this.#untilKept((onKept) =>
      this.#insist(this.#jobPath(job.id), { kind: 'job', job }, () => jobs.save(job), onKept).catch(
        (error: unknown) => {
          // The store is there and refuses it; otherwise the daemon ends.
          if (!mayComeBack(error)) this.#jobs.delete(job.id);
          throw error;
        },
      ),
    );
  }

  endInstall(uuid: string, outcome: InstallOutcome): Promise<InstanceRecord> {
    return this.#endInstall(uuid, outcome);
  }

  keepInstall(uuid: string, outcome: InstallOutcome): Promise<void> {
    return this.#untilKept((onKept) => this.#endInstall(uuid, outcome, onKept));
  }

  #endInstall(uuid: string, outcome: InstallOutcome, onKept?: () => void): Promise<InstanceRecord> {
    const { dir, instances } = this.#options;
    const path = join(dir, `install-${uuid}.json`);
    const write = (): Promise<InstanceRecord> =>
      instances.update(uuid, (instance) => settle(instance, outcome));
    return this.#insist(path, { kind: 'install', uuid, outcome }, write, onKept);
  }

  async noteRemoval(uuid: string, begun: BegunRemoval): Promise<void> {
    const { logger } = this.#options;
    this.#removals.set(uuid, begun);
    const path = this.#removalPath(uuid);
    const note = { kind: 'begun-removal', uuid, begun } as const;
    const isKept = await this.#keep(path, note);
    this.#insist(path, note, () => this.#write(note), undefined, isKept)
      .then(() => this.#removals.delete(uuid))
      .catch((error: unknown) => logger.error('outcome.not-written', { err: error }));
  }

  async endRemoval(uuid: string): Promise<void> {
    const { instances } = this.#options;
    const end = { kind: 'removal', uuid } as const;
    await this.#insist(this.#removalPath(uuid), end, () => instances.remove(uuid));
  }

  removalOf(uuid: string): BegunRemoval | undefined {
    return this.#removals.get(uuid);
  }

  /** What fails after it was kept, or is refused by the store, is logged: nobody waits for it. */
  async #untilKept(start: (onKept: () => void) => Promise<unknown>): Promise<void> {
    const kept = Promise.withResolvers<undefined>();
    const onKept = (): void => kept.resolve(undefined);
    start(onKept).then(onKept, (error: unknown) => {
      this.#options.logger.error('outcome.not-written', { err: error });
      onKept();
    });
    await kept.promise;
  }

  async resume(): Promise<void> {
    const { dir, logger } = this.#options;
    for (const name of await listFiles(dir)) {
      const path = join(dir, name);
      const found = written.safeParse(parseJson(await readFile(path, 'utf8'))).data;
      if (found === undefined) {
        logger.error('outcome.unreadable', { path });
        continue;
      }
      try {
        await this.#write(found);
      } catch (error) {
        // A record that is set aside keeps nothing but itself waiting: for whoever repairs it.
        if (isAway(error)) throw error;
        logger.error('outcome.not-written', { path, err: error });
        continue;
      }
      logger.info('outcome.written', { outcome: name });
      await rm(path, { force: true });
    }
  }

  async #write(found: Written): Promise<void> {
    const { jobs, instances } = this.#options;
    if (found.kind === 'job') return jobs.save(found.job);
    const { uuid } = found;
    if ((await instances.findByUuid(uuid)) === undefined) return;
    if (found.kind === 'removal') return instances.remove(uuid);
    try {
      await instances.update(uuid, (instance) =>
        found.kind === 'install'
          ? settle(instance, found.outcome)
          : beginRemoval(instance, found.begun.jobId, found.begun.beganAtMs),
      );
    } catch (error) {
      // It went meanwhile.
      if (!isAppError(error, 'INSTANCE_NOT_FOUND')) throw error;
    }
  }

  #removalPath(uuid: string): string {
    return join(this.#options.dir, `removal-${uuid}.json`);
  }

  #jobPath(id: number): string {
    return join(this.#options.dir, `job-${id}.json`);
  }

  /** @param onKept called once it is on the disk, which a full one may never take */
  async #insist<T>(
    path: string,
    outcome: Written,
    write: () => Promise<T>,
    onKept: () => void = () => undefined,
    wasKept = false,
  ): Promise<T> {
    const { signal, logger } = this.#options;
    for (let isKept = wasKept; ;) {
      try {
        const done = await write();
        if (outcome.kind === 'job') this.#jobs.delete(outcome.job.id);
        if (isKept) await rm(path, { force: true });
        return done;
      } catch (error) {
        if (!mayComeBack(error)) throw error;
        if (!isKept) {
          logger.warn('outcome.waits', { path, reason: messageOf(error) });
          isKept = await this.#keep(path, outcome);
          if (isKept) onKept();
        }
        if (signal.aborted) throw error;
        await sleep(WRITE_AGAIN_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #keep(path: string, outcome: Written): Promise<boolean> {
    try {
      const { dir } = this.#options;
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await syncPath(dirname(dir));
      await writeDurably(path, JSON.stringify(outcome), { mode: 0o600 });
      return true;
    } catch (error) {
      this.#options.logger.error('outcome.not-kept', { path, err: error });
      return false;
    }
  }
}

/** Gives an instance its end, unless it was installed anew meanwhile: that has its own. Pure. */
function settle(
  instance: InstanceRecord,
  { installState, install, changes }: InstallOutcome,
): InstanceRecord {
  if (instance.install?.jobId !== install.jobId) return instance;
  if (installState === 'failed') return failInstall(instance, install);
  const installed = { ...instance, ...changes, installState, install, beforeReinstall: null };
  // What comes next was asked of this job, and is no return to what was.
  installed.stoppedByJob = null;
  // From now on it boots what was installed.
  const bootEnv = installsSystem(installed.bootEnv) ? LOCAL_BOOT_ENV : installed.bootEnv;
  return { ...installed, bootEnv };
}

/** Whether something could not be written now, and may be later. */
function isAway(error: unknown): boolean {
  return isAppError(error, 'STORE_UNAVAILABLE') || isAppError(error, 'DISK_FULL');
}

/** An operator repairs a key that another program wrote: what ended meanwhile is not lost. */
function mayComeBack(error: unknown): boolean {
  return isAway(error) || error instanceof BrokenKey;
}

async function listFiles(dir: string): Promise<readonly string[]> {
  try {
    // Half files, of a daemon that was killed, have other names.
    const names = await readdir(dir);
    for (const name of names.filter((one) => !one.endsWith('.json'))) await rm(join(dir, name));
    return names.filter((name) => name.endsWith('.json'));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
