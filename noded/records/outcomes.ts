import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { pause } from '#shared/abort/until.ts';
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

/** The end of an installation, and the changes of its instance after success. */
const installOutcome = z.object({
  installState: z.enum(['installed', 'failed']),
  install: installRecord,
  changes: installChanges.optional(),
});
export type InstallOutcome = z.infer<typeof installOutcome>;

/** The job and beginning of a removal. */
const begunRemoval = z.object({ jobId: z.number(), beganAtMs: z.number() });
export type BegunRemoval = z.infer<typeof begunRemoval>;

/** Content of a file. An unreadable file stays in place, and each start logs it. */
const written = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('job'), job: jobRecord }),
  z.object({ kind: z.literal('install'), uuid: z.uuid(), outcome: installOutcome }),
  z.object({ kind: z.literal('begun-removal'), uuid: z.uuid(), begun: begunRemoval }),
  z.object({ kind: z.literal('removal'), uuid: z.uuid() }),
]);
type Written = z.infer<typeof written>;

export interface OutcomesOptions {
  readonly dir: string;
  readonly jobs: JobRepository;
  readonly instances: InstanceRepository;
  /** Ends the waits for the store. Unwritten ends are on the disk. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

const WRITE_AGAIN_MS = 500;

/**
 * Writes the ends of jobs, installations and instances despite failures of the store or the daemon,
 * since they cannot be undone. Until the store accepts one, a synced file of this node holds it,
 * which the next daemon reads.
 *
 * INVARIANT: at most one file per job and per instance, and no more jobs than ran when the store
 * became unavailable, since no job is accepted then.
 */
export class Outcomes {
  readonly #options: OutcomesOptions;
  readonly #jobs = new Map<number, JobRecord>();
  readonly #removals = new Map<string, BegunRemoval>();

  constructor(options: OutcomesOptions) {
    this.#options = options;
  }

  /** Returns the end of a job that the store does not have yet. */
  unwrittenJob(id: number): JobRecord | undefined {
    return this.#jobs.get(id);
  }

  /** Resolves when the end of a job is in the store, or on this node's disk. */
  async endJob(job: JobRecord): Promise<void> {
    this.#jobs.set(job.id, job);
    const { jobs } = this.#options;
    await this.#untilKept((onKept) =>
      this.#insist(this.#jobPath(job.id), { kind: 'job', job }, () => jobs.save(job), onKept).catch(
        (error: unknown) => {
          // The store answers and refuses it. After other errors the daemon is ending.
          if (!mayComeBack(error)) this.#jobs.delete(job.id);
          throw error;
        },
      ),
    );
  }

  /**
   * Resolves when the store has the end.
   * @throws AppError STORE_UNAVAILABLE if the wait was aborted
   */
  endInstall(uuid: string, outcome: InstallOutcome): Promise<InstanceRecord> {
    return this.#endInstall(uuid, outcome);
  }

  /** Writes the same end. Resolves when it is in the store, or on this node's disk. */
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

  /**
   * Notes a removal for which the store has no room. There may be room after its disks are removed.
   * Until then the note is in memory, and on this node's disk if that has room. Resolves without
   * waiting for the store.
   */
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

  /**
   * Ends a removal whose disks are gone. Resolves when the record is removed.
   * @throws AppError as `endInstall`
   */
  async endRemoval(uuid: string): Promise<void> {
    const { instances } = this.#options;
    const end = { kind: 'removal', uuid } as const;
    await this.#insist(this.#removalPath(uuid), end, () => instances.remove(uuid));
  }

  /** Returns a noted removal that is not in the store yet. */
  removalOf(uuid: string): BegunRemoval | undefined {
    return this.#removals.get(uuid);
  }

  /** Logs failures after the end was kept, or of a refusing store: the caller no longer waits. */
  async #untilKept(start: (onKept: () => void) => Promise<unknown>): Promise<void> {
    const kept = Promise.withResolvers<undefined>();
    const onKept = (): void => kept.resolve(undefined);
    start(onKept).then(onKept, (error: unknown) => {
      this.#options.logger.error('outcome.not-written', { err: error });
      onKept();
    });
    await kept.promise;
  }

  /**
   * Writes the ends that an earlier daemon could not write. If the store refuses one because its
   * record is unreadable, the file is logged and kept.
   * @throws AppError STORE_UNAVAILABLE, DISK_FULL
   */
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
        // An unreadable record delays only its own file, until it is repaired.
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
      // The instance was removed meanwhile.
      if (!isAppError(error, 'INSTANCE_NOT_FOUND')) throw error;
    }
  }

  #removalPath(uuid: string): string {
    return join(this.#options.dir, `removal-${uuid}.json`);
  }

  #jobPath(id: number): string {
    return join(this.#options.dir, `job-${id}.json`);
  }

  /** @param onKept called when the end is on the disk; never if the disk is full */
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
        await pause(WRITE_AGAIN_MS, signal);
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

/** Applies the end of an installation, unless a newer installation has begun. Pure. */
function settle(
  instance: InstanceRecord,
  { installState, install, changes }: InstallOutcome,
): InstanceRecord {
  if (instance.install?.jobId !== install.jobId) return instance;
  if (installState === 'failed') return failInstall(instance, install);
  const installed = { ...instance, ...changes, installState, install, beforeReinstall: null };
  // The job itself decides on a start: do not restore the former run.
  installed.stoppedByJob = null;
  // From now on the instance boots the installed system.
  const bootEnv = installsSystem(installed.bootEnv) ? LOCAL_BOOT_ENV : installed.bootEnv;
  return { ...installed, bootEnv };
}

/** Returns whether a failed write may succeed later. */
function isAway(error: unknown): boolean {
  return isAppError(error, 'STORE_UNAVAILABLE') || isAppError(error, 'DISK_FULL');
}

/** Returns whether waiting helps. An operator can repair a key that another program wrote. */
function mayComeBack(error: unknown): boolean {
  return isAway(error) || error instanceof BrokenKey;
}

async function listFiles(dir: string): Promise<readonly string[]> {
  try {
    // Temporary files of a killed daemon have other suffixes.
    const names = await readdir(dir);
    for (const name of names.filter((one) => !one.endsWith('.json'))) await rm(join(dir, name));
    return names.filter((name) => name.endsWith('.json'));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
