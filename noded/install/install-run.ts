import { randomUUID } from 'node:crypto';
import type { InstallRecord, InstanceRecord, StageTiming } from '#shared/contract/instance.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import { redactSource } from '#shared/contract/redact-source.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { createMask } from '#shared/secret/mask.ts';
import { reveal } from '#shared/secret/secret.ts';
import type { Accelerator } from '../hypervisor/machine.ts';
import type { FetchedImage } from '../images/image-cache.ts';
import type { InstallContent } from '../instances/plan-view.ts';
import type { JobContext } from '../jobs/job-handler.ts';
import { runHostScript } from '../os/run-host-script.ts';
import { planOspVariables } from '../os/script-environment.ts';
import { AlongsideScript } from './alongside-script.ts';
import type { Appliance } from './appliance-files.ts';
import { planApplianceMachine, planMediumMachine } from './appliance-machine.ts';
import { followAppliance, hasNeverComeUp } from './appliance-run.ts';
import { createChannelCommands } from './channel-commands.ts';
import { buildInstallContent, planInstanceEnvironment } from './install-content.ts';
import { InstallLog, installLogPath } from './install-log.ts';
import type { ActiveInstall, InstallerDependencies, InstallRequest } from './install-request.ts';
import { followMedium } from './medium-run.ts';
import { planPhases, type InstallPhase } from './plan-phases.ts';

/** An appliance that hangs before its agent runs is rare, and a matter of the emulator: the next boot goes well. */
const MAX_BOOTS = 2;

type AppliancePhase = Extract<InstallPhase, { kind: 'appliance' }>;

/** One installation. INVARIANT: `stage` is where it is now, and what a failure is blamed on. */
export class InstallRun {
  readonly #dependencies: InstallerDependencies;
  readonly #request: InstallRequest;
  readonly #context: JobContext;
  readonly #publish: (active: ActiveInstall) => void;
  readonly #startedAtMs: number;
  readonly timings: StageTiming[] = [];
  /** The agent masks too; this is for what it missed, and for scripts on the host. */
  readonly mask: (text: string) => string;
  stage: InstallStage = 'create-disks';
  log: InstallLog | undefined;
  #image: FetchedImage | null = null;
  #saving: Promise<unknown> = Promise.resolve();

  constructor(
    dependencies: InstallerDependencies,
    request: InstallRequest,
    context: JobContext,
    publish: (active: ActiveInstall) => void,
  ) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#context = context;
    this.#publish = publish;
    this.#startedAtMs = dependencies.clock.now();
    this.mask = createMask(hiddenValues(request));
  }

  async execute(): Promise<void> {
    const { disks, images, logDir, applianceFiles } = this.#dependencies;
    const { instance, scripts } = this.#request;
    const { report, signal } = this.#context;
    this.log = await InstallLog.create(installLogPath(logDir, instance.uuid), this.mask);
    await this.#timed('create-disks', async () => {
      await disks.createEmpty(instance);
      return `${instance.disks.length} sparse, ${formatGiB(instance.disks)}`;
    });
    const source = instance.osImage;
    if (source !== null) {
      await this.#timed('fetch-image', async () => {
        this.#image = await images.fetch(source, {
          signal,
          onProgress: (done, total) => report.progress('fetch-image', done, total),
          onWait: (message) => report.log(message),
          ...(instance.osImageChecksum !== null && { checksum: instance.osImageChecksum }),
        });
        return `${this.#image.sizeBytes} bytes from ${redactSource(source)}`;
      });
    }
    this.#publish({ instance, image: this.#image, secrets: this.#request.secrets });
    if (this.#request.isFromMedium) return this.#runMedium();
    const phases = planPhases({
      hasImage: this.#image !== null,
      hasPackage: instance.personalizationPackage !== null,
      applianceScript: scripts.appliance,
      hostScript: scripts.host,
      hasHooks: this.#request.hooks.length > 0 || (await applianceFiles.hasHooks()),
      isReinstall: this.#request.isReinstall,
    });
    for (const phase of phases) {
      if (phase.kind === 'appliance') await this.#runAppliance(phase);
      else await this.#timed('os-scripts', () => this.#runHostScript(phase.path, signal));
    }
  }

  record(end: Pick<InstallRecord, 'state' | 'stage' | 'error'>): InstallRecord {
    return {
      jobId: this.#context.jobId,
      startedAtMs: this.#startedAtMs,
      endedAtMs: end.state === 'installing' ? null : this.#dependencies.clock.now(),
      logFile: this.log?.path ?? null,
      stages: [...this.timings],
      ...end,
    };
  }

  /** Until this resolves, a save of a stage and lines of the log may still be on their way. */
  async settle(): Promise<void> {
    await this.#saving;
    await this.log?.flush();
  }

  async close(): Promise<void> {
    this.#image?.release();
    await this.log?.close();
  }

  async #runAppliance(phase: AppliancePhase): Promise<void> {
    const { applianceFiles } = this.#dependencies;
    const { report } = this.#context;
    const appliance = await this.#timed('prepare-appliance', async () => {
      const verified = await applianceFiles.ensure(this.#context);
      return [`kernel ${verified.manifest.kernelVersion}, intact`, verified] as const;
    });
    this.#enter('boot-appliance');
    report.stageStarted('boot-appliance');
    const accelerator = await this.#chooseAccelerator();
    for (let boot = 1; ; boot += 1) {
      try {
        return await this.#bootAppliance(phase, appliance, accelerator);
      } catch (error) {
        if (boot === MAX_BOOTS || !hasNeverComeUp(error)) throw error;
        this.#dependencies.logger.warn('appliance.booted-again', { err: error });
        report.log(`${messageOf(error)}; nothing was written yet: it is booted once more`);
      }
    }
  }

  /** One machine from power-on to power-off. */
  async #bootAppliance(
    phase: AppliancePhase,
    appliance: Appliance,
    accelerator: Accelerator,
  ): Promise<void> {
    const { keeper, views, clock, disks, guestEvents, bootTimeoutMs } = this.#dependencies;
    const { instance, secrets } = this.#request;
    const installId = randomUUID();
    const content = await this.#buildContent(installId, phase);
    const imagePath = phase.image ? (this.#image?.path ?? null) : null;
    if (phase.image) await this.#image?.verifyUnchanged();
    const alongside = new AlongsideScript(phase.alongside, this.#context.signal, (path, signal) =>
      this.#runHostScript(path, signal),
    );
    const heard = guestEvents.listenEarly(instance.uuid);
    try {
      const machine = await keeper.start({
        instance,
        kind: 'appliance',
        signal: this.#context.signal,
        withInstanceNics: false,
        makeView: (device, revision) =>
          views.forInstall(instance, device, revision, content, secrets),
        makeSpec: async (nics) =>
          planApplianceMachine({
            instance,
            appliance,
            accelerator,
            nics,
            imagePath,
            diskPath: (index) => disks.pathOf(instance, index),
          }),
      });
      await followAppliance({
        installId,
        machine,
        log: this.#openLog(),
        clock,
        bootTimeoutMs,
        context: { ...this.#context, signal: alongside.signal },
        subscribe: heard.handOver,
        onStage: (stage) => {
          this.#enter(stage);
          if (stage === 'os-scripts') alongside.start();
        },
        onTiming: (timing) => this.timings.push(timing),
      });
      await alongside.finish();
    } finally {
      heard.stop();
      await alongside.abandon();
      await keeper.kill(instance.uuid);
    }
  }

  /** The instance installs itself from a medium; then it is as if it had always been there. */
  async #runMedium(): Promise<void> {
    const { keeper, views, disks, guestEvents } = this.#dependencies;
    const { instance, secrets } = this.#request;
    const installId = randomUUID();
    const content = await this.#buildContent(installId, {
      image: false,
      script: null,
      personalization: true,
    });
    const accelerator = await this.#chooseAccelerator();
    const heard = guestEvents.listenEarly(instance.uuid);
    try {
      await this.#timed('os-scripts', async () => {
        const machine = await keeper.start({
          instance,
          kind: 'appliance',
          signal: this.#context.signal,
          withInstanceNics: true,
          makeView: (device, revision) =>
            views.forInstall(instance, device, revision, content, secrets),
          makeSpec: async (nics) =>
            planMediumMachine({
              instance,
              accelerator,
              nics,
              diskPath: (index) => disks.pathOf(instance, index),
            }),
        });
        return followMedium({
          installId,
          machine,
          log: this.#openLog(),
          context: this.#context,
          subscribe: heard.handOver,
        });
      });
    } finally {
      heard.stop();
      await keeper.kill(instance.uuid);
    }
  }

  async #runHostScript(path: string, signal: AbortSignal): Promise<string> {
    const { instance, os, secrets, osDefaults } = this.#request;
    if (os === null) throw new Error('a host script belongs to an OS definition');
    const log = this.#openLog();
    const commands = await createChannelCommands(
      this.#dependencies.channelCommands,
      instance.name,
      instance.uuid,
    );
    try {
      const values = { ...osDefaults, ...instance.osParameters, ...instance.osParametersPrivate };
      for (const [name, secret] of secrets.osParameters) values[name] = reveal(secret);
      await runHostScript({
        path,
        cwd: os.definition.path,
        signal,
        extraPath: [commands.dir],
        environment: {
          ...planInstanceEnvironment({
            instance,
            os,
            operation: { script: 'create', reinstall: this.#request.isReinstall },
            runsIn: 'host',
            diskPath: (index) => this.#dependencies.disks.pathOf(instance, index),
          }),
          ...planOspVariables(values),
        },
        onLine: (_, line) => {
          log.append(line);
          this.#context.report.output('os-scripts', log.tail().at(-1) ?? '');
        },
      });
      return `${path} on the host`;
    } finally {
      await commands.remove();
    }
  }

  async #buildContent(
    installId: string,
    phase: Pick<AppliancePhase, 'image' | 'script' | 'personalization'> &
      Partial<Pick<AppliancePhase, 'hooks'>>,
  ): Promise<InstallContent> {
    return buildInstallContent({
      ...this.#request,
      installId,
      script: phase.script,
      ...(phase.hooks && { hookPoints: phase.hooks }),
      imageSizeBytes: phase.image ? (this.#image?.sizeBytes ?? null) : null,
      hasPackage: phase.personalization && this.#request.instance.personalizationPackage !== null,
    });
  }

  #chooseAccelerator(): Promise<Accelerator> {
    return this.#dependencies.chooseAccelerator(
      this.#request.instance.hvparams.accel ?? 'auto',
      this.#context,
    );
  }

  #openLog(): InstallLog {
    if (this.log === undefined) throw new Error('the install log is opened first');
    return this.log;
  }

  async #timed(stage: InstallStage, body: () => Promise<string>): Promise<void>;
  async #timed<T>(stage: InstallStage, body: () => Promise<readonly [string, T]>): Promise<T>;
  async #timed<T>(
    stage: InstallStage,
    body: () => Promise<string | readonly [string, T]>,
  ): Promise<T | undefined> {
    const { clock } = this.#dependencies;
    this.#enter(stage);
    this.#context.report.stageStarted(stage);
    const startedAtMs = clock.monotonicMs();
    const answer = await body();
    const [summary, value] = typeof answer === 'string' ? [answer, undefined] : answer;
    const durationMs = Math.round(clock.monotonicMs() - startedAtMs);
    this.timings.push({ stage, durationMs, summary });
    this.log?.append(`== ${stage}: ${summary}`);
    this.#context.report.stageFinished(stage, durationMs, summary);
    this.#context.signal.throwIfAborted();
    return value;
  }

  /** The store learns the stage too: it is what `info` says after this daemon was killed. */
  #enter(stage: InstallStage): void {
    this.stage = stage;
    const { repository, logger } = this.#dependencies;
    const install = this.record({ state: 'installing', stage, error: null });
    this.#saving = this.#saving
      .then(() =>
        repository.update(this.#request.instance.uuid, (instance) => ({
          ...instance,
          installState: 'installing',
          install,
        })),
      )
      .catch((error: unknown) => logger.error('install.stage-not-saved', { stage, err: error }));
  }
}

function hiddenValues({ instance, secrets, privateDefaults }: InstallRequest): readonly string[] {
  const values = [...secrets.osParameters.values()].map(reveal);
  if (secrets.packagePassword !== undefined) values.push(reveal(secrets.packagePassword));
  return [...values, ...Object.values(instance.osParametersPrivate), ...privateDefaults];
}

function formatGiB(disks: InstanceRecord['disks']): string {
  return disks.map((disk) => `${(disk.sizeBytes / 1024 ** 3).toFixed(2)} GiB`).join(', ') || 'none';
}
