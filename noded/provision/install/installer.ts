import { isAbsolute } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { ApplianceFailure } from '../appliance/follow-appliance.ts';
import { installationParameters } from '../../instances/parameters/installation-parameters.ts';
import { noSecrets } from '../../instances/parameters/job-secrets.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { StageFailure } from '../../jobs/stage-failure.ts';
import { startInstallDeadline } from './install-deadline.ts';
import { explainDiskFull } from '../../storage/explain-disk-full.ts';
import { inStage } from '../../jobs/in-stage.ts';
import { InstallRun } from './install-run.ts';
import { openArchive, type ArchiveRequest } from './open-archive.ts';
import { runHelperScript, type ScriptRequest } from './run-helper-script.ts';
import type { InstallerDependencies, InstallPlace, InstallRequest } from './install-request.ts';

/** The parts of a request that determine how much memory an installation needs. */
type MachineToRun = Pick<InstallRequest, 'isFromMedium' | 'appliance'>;

/**
 * Installs instances. Stages of the host are in install-run.ts; stages of the appliance come from
 * its agent. Both are reported, timed and recorded the same way.
 */
export class Installer {
  readonly #dependencies: InstallerDependencies;

  constructor(dependencies: InstallerDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Reserves room for an installation, normally at once and before any change. When an image or a
   * package must be downloaded first, or the instance still runs, the room is taken later by
   * `enter`, so that a slow server does not block others. Disposing of the result frees the room.
   */
  async reserve(
    instance: Pick<
      InstanceRecord,
      'uuid' | 'beparams' | 'osImage' | 'hvparams' | 'installParameters' | 'personalizationPackage'
    >,
    { runsUntilThen, ...machine }: MachineToRun & { readonly runsUntilThen: boolean },
    context: JobContext,
  ): Promise<InstallPlace> {
    const held = new DisposableStack();
    let isEntered = false;
    const enter = async (): Promise<void> => {
      if (isEntered) return;
      isEntered = true;
      held.use(await this.enterRoom(instance, machine, context));
    };
    const cdrom = machine.isFromMedium
      ? installationParameters(instance).cdrom_image_path
      : undefined;
    // A package too: it is requested before the room is needed, and may be read as a whole then.
    const sources = [instance.osImage, cdrom, instance.personalizationPackage];
    const isAtHand = sources.every((source) => source == null || isAbsolute(source));
    if (isAtHand && !runsUntilThen) await enter();
    return { enter, [Symbol.dispose]: () => held.dispose() };
  }

  /**
   * Waits until the node has room for an installation of this instance. Disposing of the result
   * frees the room. Call it before any change, in a job that holds its locks.
   */
  async enterRoom(
    { uuid, beparams }: Pick<InstanceRecord, 'uuid' | 'beparams'>,
    { isFromMedium, appliance }: MachineToRun,
    context: JobContext,
  ): Promise<Disposable> {
    const { room, applianceFiles } = this.#dependencies;
    // After a medium, an appliance may run scripts, hooks or the package.
    const applianceMiB = await applianceFiles.memoryMiB(appliance);
    const memoryMiB = isFromMedium ? Math.max(beparams.memoryMiB, applianceMiB) : applianceMiB;
    return room.enter({ uuid, memoryMiB }, context);
  }

  /** @see openArchive */
  openArchive(
    instance: InstanceRecord,
    request: ArchiveRequest,
    context: JobContext,
  ): Promise<number> {
    return openArchive(this.#dependencies, instance, request, context);
  }

  /** @see runHelperScript. Its requests through the channel are those of an installation. */
  async runScript(request: ScriptRequest, context: JobContext): Promise<readonly number[]> {
    const { instance, operation, timeoutS } = request;
    using deadline = startInstallDeadline(
      context.signal,
      `the ${operation.script} script`,
      timeoutS,
    );
    const timed: JobContext = { ...context, signal: deadline.signal };
    this.#dependencies.active.set(instance.uuid, { instance, image: null, secrets: noSecrets });
    try {
      return await runHelperScript(this.#dependencies, request, timed);
    } finally {
      this.#dependencies.active.delete(instance.uuid);
    }
  }

  /**
   * @returns the installed instance's record
   * @throws StageFailure; the QEMU process has ended then, and the failure is on record
   */
  async install(request: InstallRequest, context: JobContext): Promise<InstanceRecord> {
    const { outcomes, onStageEnded } = this.#dependencies;
    const { uuid } = request.instance;
    using deadline = startInstallDeadline(context.signal, 'the installation', request.timeoutS);
    const timed: JobContext = { ...context, signal: deadline.signal };
    const run = new InstallRun(this.#dependencies, request, timed, {
      publish: (active) => this.#dependencies.active.set(uuid, active),
      // Waiting for other installations does not count towards the time limit.
      enterRoom: () => deadline.pausedDuring(() => request.place.enter()),
    });
    try {
      await this.#execute(run, timed);
      for (const { stage, durationMs } of run.timings) onStageEnded(stage, durationMs);
      const install = run.record({ state: 'success', stage: null, error: null });
      const { changes } = request;
      const outcome = { installState: 'installed', install, changes } as const;
      const installed = await outcomes.endInstall(uuid, outcome);
      // If this daemon dies before takeOver, the next start does it, as the record now requires.
      await run.disks?.takeOver();
      return installed;
    } finally {
      this.#dependencies.active.delete(uuid);
      await run.close();
    }
  }

  /** Runs the stages, and records a failure before it throws. */
  async #execute(run: InstallRun, timed: JobContext): Promise<void> {
    try {
      await run.execute();
      await run.settle();
      await run.disks?.sync();
      timed.signal.throwIfAborted();
    } catch (thrown) {
      await run.settle();
      // Errors caused by the abort (a killed child, an AbortError) give way to its reason.
      const error: unknown =
        timed.signal.aborted && !isAppError(thrown) ? timed.signal.reason : thrown;
      throw await this.#fail(run, error);
    }
  }

  /** Records a failure. @returns it, for the job */
  async #fail(run: InstallRun, error: unknown): Promise<StageFailure> {
    const stage = (error instanceof ApplianceFailure ? error.stage : null) ?? run.stage;
    const explained = await explainDiskFull(
      error,
      () => this.#dependencies.disks.freeBytes(),
      'gnt-instance reinstall',
    );
    // The store is on the same file system. Partly written disks are removed first, so that the
    // failure can be recorded.
    if (run.disks?.areBeside === true || isAppError(explained, 'DISK_FULL'))
      await run.disks?.discard().catch(() => undefined);
    const failure = inStage(explained, stage, run.log?.tail() ?? [], run.mask);
    // The log must show the failure without the record.
    run.log?.append(`== ${stage}: ${failure.code}: ${failure.message}`);
    const install = run.record({
      state: isAppError(failure, 'JOB_CANCELED') ? 'canceled' : 'failed',
      stage,
      error: { code: failure.code, message: failure.message, hint: failure.hint ?? null },
    });
    await this.#dependencies.outcomes.keepInstall(run.instanceUuid, {
      installState: 'failed',
      install,
    });
    return failure;
  }
}
