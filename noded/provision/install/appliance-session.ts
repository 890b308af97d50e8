import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Accelerator, MachineDisk } from '../../vmm/machine.ts';
import { findIdleProcessors } from '../../host/idle-processors.ts';
import { installationParameters } from '../../instances/parameters/installation-parameters.ts';
import type { OsParameters } from '../../instances/parameters/os-parameters.ts';
import type { InstallContent } from '../../instances/view/plan-view.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { AlongsideScript } from '../os/alongside-script.ts';
import type { Appliance } from '../appliance/appliance-files.ts';
import {
  APPLIANCE_VCPUS,
  KERNEL_STARTER,
  planApplianceMachine,
} from '../appliance/appliance-machine.ts';
import { followAppliance, hasNeverComeUp } from '../appliance/follow-appliance.ts';
import type { InstallerDependencies } from './install-request.ts';
import type { StageRecorder } from '../../jobs/stage-recorder.ts';

/** With TCG an appliance rarely hangs before its agent runs. The next boot succeeds. */
const MAX_BOOTS = 2;

/** The work of one appliance. */
export interface ApplianceSession {
  readonly instance: InstanceRecord;
  /** Name of the appliance. */
  readonly appliance: string;
  /**
   * Returns the path of a disk by its index; null for an appliance without the instance's disks.
   */
  readonly diskPath: ((index: number) => string) | null;
  readonly parameters: OsParameters;
  /** Makes the content for each boot. */
  readonly makeContent: (installId: string) => Promise<InstallContent>;
  /** Disks besides the instance's own. */
  readonly contentDisks: readonly MachineDisk[];
  readonly beforeBoot?: () => Promise<void>;
  /** Called with the verified appliance. */
  readonly onAppliance?: (appliance: Appliance) => void;
  /** Creates the host script that starts together with the appliance's script. */
  readonly createAlongside?: () => AlongsideScript;
  readonly stages: StageRecorder;
  readonly context: JobContext;
}

/**
 * Boots the appliance and follows it to its power-off. Boots it a second time when it hung before
 * the agent's first event.
 * @returns the size of each dump in bytes
 * @throws AppError of followAppliance
 */
export async function runAppliance(
  dependencies: InstallerDependencies,
  session: ApplianceSession,
): Promise<readonly number[]> {
  const { context, stages, instance } = session;
  const appliance = await stages.timed('prepare-appliance', async () => {
    const verified = await dependencies.applianceFiles.ensure(session.appliance, context);
    return [`kernel ${verified.manifest.kernelVersion}, intact`, verified] as const;
  });
  session.onAppliance?.(appliance);
  stages.enter('boot-appliance');
  context.report.stageStarted('boot-appliance');
  const accelerator = await dependencies.chooseAccelerator(
    installationParameters(instance).accel ?? 'auto',
    context,
  );
  for (let boot = 1; ; boot += 1) {
    try {
      return await bootAppliance(dependencies, session, appliance, accelerator);
    } catch (error) {
      if (boot === MAX_BOOTS || !hasNeverComeUp(error)) throw error;
      dependencies.logger.warn('appliance.booted-again', { err: error });
      context.report.log(
        `${messageOf(error)}; nothing was written yet: booting the appliance once more`,
      );
    }
  }
}

async function bootAppliance(
  { keeper, views, clock, guestEvents, bootTimeoutMs }: InstallerDependencies,
  session: ApplianceSession,
  appliance: Appliance,
  accelerator: Accelerator,
): Promise<readonly number[]> {
  const { instance, parameters, context, stages, contentDisks } = session;
  const installId = randomUUID();
  let content = await session.makeContent(installId);
  await session.beforeBoot?.();
  const alongside = session.createAlongside?.();
  const heard = guestEvents.listenEarly(instance.uuid);
  try {
    const machine = await keeper.start({
      instance,
      kind: 'appliance',
      signal: context.signal,
      withInstanceNics: false,
      makeView: (device, revision) =>
        views.forInstall(instance, device, revision, content, parameters),
      makeSpec: async (nics) =>
        planApplianceMachine({
          instance,
          appliance,
          accelerator,
          hasKernelStarter: existsSync(KERNEL_STARTER),
          idleProcessors: await findIdleProcessors(APPLIANCE_VCPUS),
          nics,
          contentDisks,
          diskPath: session.diskPath,
        }),
    });
    const dumpBytes = await followAppliance({
      plan: content.plan,
      machine,
      log: stages.openLog(),
      clock,
      bootTimeoutMs,
      context: { ...context, signal: alongside?.signal ?? context.signal },
      subscribe: heard.handOver,
      // With the key in the view, a restarted metad rejects a script that posts before the agent
      // does.
      onAgentKey: (agentKey) => {
        content = { ...content, agentKey };
      },
      onStage: (stage) => {
        stages.enter(stage);
        if (stage === 'os-scripts') alongside?.start();
      },
      onTiming: (timing) => stages.timings.push(timing),
    });
    await alongside?.finish();
    return dumpBytes;
  } finally {
    heard.stop();
    await alongside?.abandon();
    await keeper.kill(instance.uuid);
  }
}
