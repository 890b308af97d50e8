import { randomUUID } from 'node:crypto';
import type { InstallRecord, InstanceRecord, StageTiming } from '#shared/contract/instance.ts';
import type { InstallStage } from '#shared/contract/primitives.ts';
import type { Provenance } from '#shared/contract/provenance.ts';
import { createMask } from '#shared/secret/mask.ts';
import { reveal } from '#shared/secret/secret.ts';
import { GIB } from '#shared/units/bytes.ts';
import type { InstallDisks } from '../../storage/install-disks.ts';
import type { FetchedImage } from '../../content/images/image-cache.ts';
import { listHiddenValues } from '../../instances/parameters/os-parameters.ts';
import type { InstallContent } from '../../instances/view/plan-view.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import { AlongsideScript } from '../os/alongside-script.ts';
import type { HostScript } from '../os/choose-scripts.ts';
import { runAppliance } from './appliance-session.ts';
import { checkPackage, fetchCdrom, fetchImage } from './bring-content.ts';
import { chooseDisks } from '../../storage/choose-disks.ts';
import { findDigest } from '../os/definition-content.ts';
import { createChannelCommands } from '../os/channel-commands.ts';
import { importDumps, runInstanceScript } from '../os/instance-script.ts';
import { buildInstallContent } from './install-content.ts';
import { InstallLog, installLogPath } from '../../host/install-log.ts';
import type { ActiveInstall, InstallerDependencies, InstallRequest } from './install-request.ts';
import { dumpSerial, IMAGE_SERIAL } from '../../storage/disk-serials.ts';
import { planProvenance } from './plan-provenance.ts';
import { planLook, planPhases, type InstallPhase } from './plan-phases.ts';
import { runMedium } from './run-medium.ts';
import { StageRecorder } from '../../jobs/stage-recorder.ts';
import { isImageForHost, writeImage } from '../../content/images/write-image.ts';

type AppliancePhase = Extract<InstallPhase, { kind: 'appliance' }>;

export interface InstallSteps {
  readonly publish: (active: ActiveInstall) => void;
  /** Waits for room on the node. */
  readonly enterRoom: () => Promise<void>;
}

/** One installation, from its disks to the final power-off. */
export class InstallRun {
  readonly #dependencies: InstallerDependencies;
  readonly #request: InstallRequest;
  readonly #context: JobContext;
  readonly #steps: InstallSteps;
  readonly #startedAtMs: number;
  readonly #stages: StageRecorder;
  /** The agent masks too. This mask covers its omissions, and scripts on the host. */
  readonly mask: (text: string) => string;
  #image: FetchedImage | null = null;
  /** The downloaded medium, when given by URL. */
  #cdrom: FetchedImage | null = null;
  #disks: (InstallDisks & Disposable) | null = null;
  #provenance: Provenance | undefined;
  readonly #appliances = new Set<string>();
  #saving: Promise<unknown> = Promise.resolve();

  constructor(
    dependencies: InstallerDependencies,
    request: InstallRequest,
    context: JobContext,
    steps: InstallSteps,
  ) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#context = context;
    this.#steps = steps;
    this.#startedAtMs = dependencies.clock.now();
    this.mask = createMask(hiddenValues(request));
    this.#stages = new StageRecorder({
      first: 'create-disks',
      clock: dependencies.clock,
      context,
      onEnter: (stage) => this.#save(stage),
    });
  }

  get instanceUuid(): string {
    return this.#request.instance.uuid;
  }

  get stage(): InstallStage {
    return this.#stages.stage;
  }

  get timings(): readonly StageTiming[] {
    return this.#stages.timings;
  }

  get log(): InstallLog | undefined {
    return this.#stages.log;
  }

  /** Null until the target disks are chosen. */
  get disks(): InstallDisks | null {
    return this.#disks;
  }

  /** Runs all stages. Checks that do not write to a disk come first. */
  async execute(): Promise<void> {
    const { disks, logDir, applianceFiles } = this.#dependencies;
    const { instance, scripts, formerDisks, hooks, isFromMedium, appliance, secrets } =
      this.#request;
    const { report, signal } = this.#context;
    const bringing = [this.#request, this.#stages, this.#context] as const;
    this.#stages.log = await InstallLog.create(installLogPath(logDir, instance.uuid), this.mask);
    const brought = await fetchImage(this.#dependencies, ...bringing);
    this.#image = brought?.image ?? null;
    this.#cdrom = await fetchCdrom(this.#dependencies, ...bringing);
    const packageSha256 = await checkPackage(this.#dependencies, ...bringing);
    const hasHooks = hooks.length > 0 || (await applianceFiles.hooksOf(appliance)).length > 0;
    const isImageOnHost = await isImageForHost(instance, this.#image, hasHooks, report);
    const imageBytes = this.#image?.sizeBytes ?? 0;
    this.#disks = await chooseDisks(disks, instance, formerDisks, imageBytes, report);
    await this.#steps.enterRoom();
    const osDigest = await this.#findOsDigest();
    this.#steps.publish({ instance, image: this.#image, secrets, packageSha256 });
    const parts = {
      hasMedium: isFromMedium,
      hasImage: this.#image !== null,
      isImageOnHost,
      hasPackage: instance.personalizationPackage !== null,
      applianceScript: scripts.appliance,
      hostScript: scripts.host,
      hasHooks,
      isReinstall: this.#request.isReinstall,
    };
    if (!this.#disks.areBeside && formerDisks !== 'worthless') {
      const look = planLook({ ...parts, hasImage: parts.hasImage && !isImageOnHost });
      if (look !== null) await this.#runAppliance(look, null);
      // Check again: the look took minutes, and the next line gives up the former content.
      await disks.checkOverwrite(instance);
      await this.#request.giveUpFormerDisks();
    }
    const filled = this.#disks;
    await this.#stages.timed('create-disks', async () => {
      await filled.create();
      const isThick = instance.disks.some(({ vg, pool }) => vg !== undefined && pool === undefined);
      const kind = isThick ? 'of zeros' : 'sparse';
      return `${instance.disks.length} ${kind}, ${formatGiB(instance.disks)}`;
    });
    for (const phase of planPhases(parts)) {
      if (phase.kind === 'medium') await this.#runMedium(filled);
      else if (phase.kind === 'host-image') await this.#writeImage(filled);
      else if (phase.kind === 'appliance') await this.#runAppliance(phase, filled);
      else
        await this.#stages.timed('os-scripts', () =>
          this.#runHostScript(phase.script, filled, signal),
        );
    }
    this.#provenance = planProvenance({
      isImport: this.#request.dumps !== null,
      image: brought,
      osDigests: [osDigest, await this.#findOsDigest()],
      appliances: this.#appliances,
    });
  }

  async #findOsDigest(): Promise<string | null> {
    const { os } = this.#request;
    return os && findDigest(os.definition.path);
  }

  record(end: Pick<InstallRecord, 'state' | 'stage' | 'error'>): InstallRecord {
    return {
      jobId: this.#context.jobId,
      startedAtMs: this.#startedAtMs,
      endedAtMs: end.state === 'installing' ? null : this.#dependencies.clock.now(),
      logFile: this.#stages.log?.path ?? null,
      stages: [...this.#stages.timings],
      ...(end.state === 'success' && this.#provenance && { provenance: this.#provenance }),
      ...end,
    };
  }

  /** Waits for the pending save of a stage, and for pending lines of the log. */
  async settle(): Promise<void> {
    await this.#saving;
    await this.#stages.log?.flush();
  }

  async close(): Promise<void> {
    this.#image?.release();
    this.#cdrom?.release();
    this.#disks?.[Symbol.dispose]();
    await this.#stages.log?.close();
  }

  /** @param filled null for a look */
  async #runAppliance(phase: AppliancePhase, filled: InstallDisks | null): Promise<void> {
    const { instance, appliance, parameters, dumps } = this.#request;
    const image = phase.image ? this.#image : null;
    // An empty dump becomes no disk: its script reads nothing.
    const takesDumps =
      phase.script === null ? [] : (dumps ?? []).filter(({ sizeBytes }) => sizeBytes > 0);
    await runAppliance(this.#dependencies, {
      instance,
      appliance,
      diskPath: filled && ((index) => filled.pathOf(index)),
      parameters,
      makeContent: (installId) =>
        this.#buildContent(installId, { ...phase, isLook: filled === null }),
      contentDisks: [
        ...(image === null ? [] : [{ path: image.path, serial: IMAGE_SERIAL, readOnly: true }]),
        ...takesDumps.map(({ disk, path }) => ({ path, serial: dumpSerial(disk), readOnly: true })),
      ],
      beforeBoot: async () => image?.verifyUnchanged(),
      ...(filled && {
        createAlongside: () =>
          new AlongsideScript(phase.alongside, this.#context.signal, (script, signal) =>
            this.#runHostScript(script, filled, signal),
          ),
        onAppliance: ({ digest }) => this.#appliances.add(digest),
      }),
      stages: this.#stages,
      context: this.#context,
    });
  }

  async #writeImage(filled: InstallDisks): Promise<void> {
    const image = this.#image;
    if (image === null) throw new Error('the plan has no image to write');
    const { report, signal } = this.#context;
    await this.#stages.timed('image', () =>
      writeImage(image, filled.pathOf(0), signal, (done, total) =>
        report.progress('image', done, total),
      ),
    );
  }

  async #runMedium(filled: InstallDisks): Promise<void> {
    const { instance, parameters, secrets } = this.#request;
    const installId = randomUUID();
    await runMedium(this.#dependencies, {
      ...{ instance, parameters, secrets, installId },
      content: await this.#buildContent(installId, {
        ...{ image: false, script: null, personalization: true },
      }),
      cdrom: this.#cdrom,
      diskPath: (index) => filled.pathOf(index),
      variablesPath: this.#dependencies.disks.variablesPathOf(instance),
      stages: this.#stages,
      context: this.#context,
    });
  }

  async #runHostScript(
    { path, digest }: HostScript,
    filled: InstallDisks,
    signal: AbortSignal,
  ): Promise<string> {
    const { instance, os, parameters, dumps, isReinstall } = this.#request;
    if (os === null) throw new Error('the plan has a host script but no OS definition');
    const { channelCommands, hostCopies } = this.#dependencies;
    await this.#request.confirmHostScript();
    await using copy = await hostCopies.make(os.definition, digest);
    const log = this.#stages.openLog();
    const commands = await createChannelCommands(channelCommands, instance.name, instance.uuid);
    try {
      const script = {
        instance,
        os: { ...os, definition: copy.definition },
        path: copy.pathOf(path),
        launch: copy.launch,
        parameters,
        diskPath: (index: number) => filled.pathOf(index),
        signal,
        extraPath: [commands.dir],
        onLine: (line: string) => {
          log.appendOutput(line);
          this.#context.report.output('os-scripts', log.tail().at(-1) ?? '');
        },
      };
      if (dumps === null)
        await runInstanceScript(script, { script: 'create', reinstall: isReinstall });
      else await importDumps(script, dumps);
      return `${path} on the host`;
    } finally {
      await commands.remove();
    }
  }

  async #buildContent(
    installId: string,
    phase: Pick<AppliancePhase, 'image' | 'script' | 'personalization'> &
      Partial<Pick<AppliancePhase, 'hooks'>> & { readonly isLook?: boolean | undefined },
  ): Promise<InstallContent> {
    return buildInstallContent({
      ...this.#request,
      dumps: this.#request.dumps ?? [],
      operation:
        this.#request.dumps === null
          ? { script: 'create', reinstall: this.#request.isReinstall }
          : { script: 'import', diskIndex: 0 },
      installId,
      script: phase.script,
      hookPoints: phase.hooks,
      isLook: phase.isLook,
      imageSizeBytes: phase.image ? (this.#image?.sizeBytes ?? null) : null,
      hasPackage: phase.personalization && this.#request.instance.personalizationPackage !== null,
    });
  }

  /** Stores the stage, so that `info` shows it even if this daemon is killed. */
  #save(stage: InstallStage): void {
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

function hiddenValues({ parameters, secrets }: InstallRequest): readonly string[] {
  const { packagePassword } = secrets;
  const password = packagePassword === undefined ? [] : [reveal(packagePassword)];
  return [...listHiddenValues(parameters), ...password];
}

function formatGiB(disks: InstanceRecord['disks']): string {
  return disks.map((disk) => `${(disk.sizeBytes / GIB).toFixed(2)} GiB`).join(', ') || 'none';
}
