import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { FetchedImage } from '../../content/images/image-cache.ts';
import { installationParameters } from '../../instances/parameters/installation-parameters.ts';
import type { JobSecrets } from '../../instances/parameters/job-secrets.ts';
import type { OsParameters } from '../../instances/parameters/os-parameters.ts';
import type { InstallContent } from '../../instances/view/plan-view.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import { planMediumMachine } from '../appliance/appliance-machine.ts';
import { followMedium } from '../appliance/follow-medium.ts';
import type { InstallerDependencies } from './install-request.ts';
import type { StageRecorder } from '../../jobs/stage-recorder.ts';

/** An instance that installs itself from a medium. */
export interface MediumSession {
  readonly instance: InstanceRecord;
  readonly parameters: OsParameters;
  /** Secrets for rendering the boot environment. */
  readonly secrets: JobSecrets;
  readonly installId: string;
  readonly content: InstallContent;
  /** The downloaded medium, when given by URL. */
  readonly cdrom: FetchedImage | null;
  readonly diskPath: (index: number) => string;
  readonly variablesPath: string;
  readonly stages: StageRecorder;
  readonly context: JobContext;
}

/**
 * Boots the instance from its installation medium, with its own NICs and the channel, and follows
 * it to its end.
 * @throws AppError of followMedium
 */
export async function runMedium(
  { keeper, views, bootViews, guestEvents, chooseAccelerator }: InstallerDependencies,
  session: MediumSession,
): Promise<void> {
  const { instance, parameters, content, cdrom, stages, context } = session;
  const wanted = installationParameters(instance).accel ?? 'auto';
  const accelerator = await chooseAccelerator(wanted, context);
  await cdrom?.verifyUnchanged();
  const isSilent = await bootViews.isSilent(instance);
  const heard = guestEvents.listenEarly(instance.uuid);
  try {
    await stages.timed('medium', async () => {
      const machine = await keeper.start({
        instance,
        kind: 'appliance',
        signal: context.signal,
        withInstanceNics: true,
        makeView: async (device, revision) => {
          const boot = await bootViews.forInstall(instance, session.secrets);
          return views.forInstall(instance, device, revision, content, parameters, boot);
        },
        makeSpec: async (nics) =>
          planMediumMachine({
            ...{ instance, accelerator, nics },
            diskPath: session.diskPath,
            variablesPath: session.variablesPath,
            cdromPath: cdrom?.path,
          }),
      });
      return followMedium({
        installId: session.installId,
        machine,
        success: isSilent ? 'poweroff' : instance.mediumSuccess,
        log: stages.openLog(),
        context,
        subscribe: heard.handOver,
      });
    });
  } finally {
    heard.stop();
    await keeper.kill(instance.uuid);
  }
}
