import type { InstallPlan } from '#shared/contract/plan.ts';
import type { HostClient, OsParameters } from '../channel/host-client.ts';
import { tryCommand } from '../command.ts';
import { dumpImage } from '../image/dump.ts';
import {
  deactivateVolumeGroups,
  listFileSystems,
  rereadPartitions,
} from '../overlay/file-systems.ts';
import {
  isInstanceMounted,
  mountInstance,
  TARGET_PATH,
  unmountInstance,
} from '../overlay/mount.ts';
import { overlayPackage } from '../overlay/package.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createWaitDisksStage, type DiskLocations, listDisksBySerial } from './disks.ts';
import { createGrowStage } from './grow.ts';
import { createOsScriptsStage } from './os-scripts.ts';
import type { Stage } from './stage.ts';

export interface PlanStagesOptions {
  readonly plan: InstallPlan;
  readonly host: HostClient;
  readonly at: DiskLocations;
  readonly parameters: () => Promise<OsParameters>;
}

export interface PlanStages {
  readonly stages: readonly Stage[];
  /** Run whether the stages succeeded or not. */
  readonly cleanup: readonly Stage[];
}

/**
 * What a plan means, as stages in their order. The instance's file systems are mounted after its scripts ran and only for the
 * package: scripts expect disks that nobody uses, as Ganeti gives them.
 */
export function createPlanStages(options: PlanStagesOptions): PlanStages {
  const { plan, host, at, parameters } = options;
  const stages: Stage[] = [createWaitDisksStage(plan, at)];
  if (plan.image) stages.push(createImageStage(plan, plan.image, at));
  if (plan.image?.grow === true) stages.push(createGrowStage(plan, at));
  if (plan.scripts)
    stages.push(createOsScriptsStage({ plan, scripts: plan.scripts, host, at, parameters }));
  if (plan.personalization) stages.push(createMountStage(plan, at), createPersonalizeStage(host));
  return { stages, cleanup: [createUnmountStage(), createSyncStage()] };
}

function createImageStage(
  plan: InstallPlan,
  image: NonNullable<InstallPlan['image']>,
  at: DiskLocations,
): Stage {
  return {
    name: 'image',
    async run(reporter) {
      const disks = listDisksBySerial(at);
      const source = disks.get(image.serial);
      const first = plan.disks[0];
      const target = first && disks.get(first.serial);
      if (!source || !target)
        throw new AppError('DISK_MISSING', 'the plan has an image, but no disk to put it on');
      const summary = await dumpImage({
        sourcePath: source.path,
        fileSizeBytes: image.fileSizeBytes,
        targetPath: target.path,
        targetSizeBytes: target.sizeBytes,
        targetDriver: 'host_device',
        reporter,
      });
      // Scripts find the image's partitions as devices.
      await rereadPartitions(plan, at);
      return summary;
    },
  };
}

function createMountStage(plan: InstallPlan, at: DiskLocations): Stage {
  return {
    name: 'mount',
    async run(reporter) {
      await rereadPartitions(plan, at);
      return await mountInstance(await listFileSystems(plan, at), reporter);
    },
  };
}

function createPersonalizeStage(host: HostClient): Stage {
  return {
    name: 'personalize',
    async run() {
      const { entries, bytes } = await overlayPackage(await host.openPackage(), TARGET_PATH);
      return `${entries} entries, ${bytes} bytes of files`;
    },
  };
}

function createUnmountStage(): Stage {
  return {
    name: 'unmount',
    async run() {
      const summary = isInstanceMounted() ? await unmountInstance() : 'nothing was mounted';
      await deactivateVolumeGroups();
      return summary;
    },
  };
}

/** Also what a script left mounted or in the cache reaches its disk. */
function createSyncStage(): Stage {
  return {
    name: 'sync',
    async run() {
      const result = await tryCommand('sync', []);
      if (result.status !== 0)
        throw new AppError('COMMAND_FAILED', `sync: ${result.stderr.trim()}`);
      return 'everything written';
    },
  };
}
