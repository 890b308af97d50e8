import { AppError } from '#shared/errors/app-error.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import type { HostClient } from '../channel/host-client.ts';
import { createWaitDisksStage, type DiskLocations, listDisksBySerial } from '../disks/disks.ts';
import { describeImage, examineImage } from '../image/examine.ts';
import { ImageJail } from '../image/image-jail.ts';
import { examinePackage } from '../overlay/package.ts';
import type { Stage } from '../report/stage.ts';
import { createOsScriptStages } from './os-scripts.ts';
import type { PlanStages, PlanStagesOptions } from './plan-stages.ts';

/**
 * Returns stages that check an installation without the instance's disks. They have the names of
 * the stages that change disks. Hooks were parsed before.
 */
export function createLookStages(options: PlanStagesOptions): PlanStages {
  const { plan, host, at } = options;
  const scripts = plan.scripts && createOsScriptStages({ ...options, scripts: plan.scripts });
  return {
    stages: [
      createWaitDisksStage({ ...plan, disks: [] }, at),
      ...(scripts?.verify ?? []),
      ...(plan.image ? [createExamineStage(plan, plan.image, at)] : []),
      ...(plan.personalization ? [createPackageStage(host)] : []),
    ],
    cleanup: [],
  };
}

function createExamineStage(
  plan: InstallPlan,
  image: NonNullable<InstallPlan['image']>,
  at: DiskLocations,
): Stage {
  return {
    name: 'image',
    async run(reporter) {
      const source = listDisksBySerial(at).get(image.serial);
      const [target] = plan.disks;
      if (!source || !target)
        throw new AppError('DISK_MISSING', 'the plan has an image, but no disk for it');
      await using jail = await ImageJail.open(source.path, null);
      const examined = await examineImage({
        sourcePath: source.path,
        jail,
        fileSizeBytes: image.fileSizeBytes,
        targetSizeBytes: target.sizeBytes,
        format: image.format ?? null,
        reporter,
      });
      return `${describeImage(examined)}: fits the disk`;
    },
  };
}

function createPackageStage(host: HostClient): Stage {
  return {
    name: 'personalize',
    async run() {
      const { entries, bytes } = await examinePackage(await host.openPackage());
      return `${entries} entries, ${bytes} bytes of files: the package can be unpacked`;
    },
  };
}
