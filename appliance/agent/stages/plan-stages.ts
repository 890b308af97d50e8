import type { InstallPlan } from '#shared/contract/plan.ts';
import type { HookPoint } from '#shared/contract/primitives.ts';
import type { HostClient, OsParameters } from '../channel/host-client.ts';
import { tryCommand } from '../process/command.ts';
import type { HookBook } from '../hooks/main.ts';
import { dumpImage } from '../image/dump.ts';
import { listFileSystems, rereadPartitions } from '../disks/file-systems.ts';
import { mountInstance, TARGET_PATH } from '../disks/mount.ts';
import { unmountDisks, unmountLeft } from '../disks/unmount.ts';
import { overlayPackage } from '../overlay/package.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { createWaitDisksStage, type DiskLocations, listDisksBySerial } from '../disks/disks.ts';
import { createGrowStage } from '../disks/grow.ts';
import { hasHooks, surroundWithHooks } from './hooks.ts';
import type { ScriptWorld } from '../scripts/script-world.ts';
import { createOsScriptStages } from './os-scripts.ts';
import type { Stage } from '../report/stage.ts';

export interface PlanStagesOptions {
  readonly plan: InstallPlan;
  readonly host: HostClient;
  readonly at: DiskLocations;
  readonly parameters: () => Promise<OsParameters>;
  readonly world: ScriptWorld;
  readonly hooks: HookBook | null;
  readonly onDumped: (dumpBytes: readonly number[]) => void;
}

export interface PlanStages {
  readonly stages: readonly Stage[];
  readonly cleanup: readonly Stage[];
}

/** Stages before the image whose hooks may have written to the disks. */
const beforeImagePoints: readonly HookPoint[] = ['install.pre', 'before-install', 'before-reset'];

/** Stages whose hooks find the instance mounted. */
const mountedPoints: readonly HookPoint[] = [
  'after-install-chroot',
  'after-reset-chroot',
  'personalize',
  'after-install',
  'after-reset',
];

/**
 * Converts a plan into ordered stages, hooks included. The instance's file systems are mounted
 * after its scripts and only when needed: scripts expect unused disks, as Ganeti gives them.
 */
export function createPlanStages(options: PlanStagesOptions): PlanStages {
  const { plan, host, at, hooks, world } = options;
  const around = (point: HookPoint, ...builtIn: Stage[]): Stage[] =>
    surroundWithHooks(hooks, point, builtIn);
  const scripts = plan.scripts && createOsScriptStages({ ...options, scripts: plan.scripts });
  const mounted = [
    ...around('after-install-chroot'),
    ...around('after-reset-chroot'),
    ...around('personalize', ...(plan.personalization ? [createPersonalizeStage(host)] : [])),
    ...around('after-install'),
    ...around('after-reset'),
  ];
  const mayHaveWritten =
    plan.scripts?.verify !== undefined ||
    beforeImagePoints.some((point) => hasHooks(hooks, point)) ||
    hooks?.has('image.before') === true;
  const mayExecute = mountedPoints.some((point) => hasHooks(hooks, point));
  return {
    stages: [
      createWaitDisksStage(plan, at),
      ...(scripts?.verify ?? []),
      ...around('install.pre'),
      ...around('before-install'),
      ...around('before-reset'),
      ...around('image', ...createImageStages(options, mayHaveWritten)),
      ...around('os-scripts', ...(scripts ? [scripts.run] : [])),
      ...(mounted.length > 0 ? [createMountStage({ plan, at, world, mayExecute })] : []),
      ...mounted,
    ],
    cleanup: [
      createUnmountStage({ plan, at, world }),
      ...around('install.post').map((stage) => ({ ...stage, isOnlyAfterSuccess: true })),
      createSyncStage(),
    ],
  };
}

function createImageStages(options: PlanStagesOptions, mayHaveWritten: boolean): Stage[] {
  const { plan, at } = options;
  if (!plan.image) return [];
  const isTargetBlank = plan.image.isDiskBlank === true && !mayHaveWritten;
  const image = createImageStage(options, plan.image, isTargetBlank);
  return plan.image.grow ? [image, createGrowStage(plan, at)] : [image];
}

function createImageStage(
  { plan, at, hooks }: PlanStagesOptions,
  image: NonNullable<InstallPlan['image']>,
  isTargetBlank: boolean,
): Stage {
  return {
    name: 'image',
    async run(reporter) {
      const disks = listDisksBySerial(at);
      const source = disks.get(image.serial);
      const first = plan.disks[0];
      const target = first && disks.get(first.serial);
      if (!source || !target)
        throw new AppError('DISK_MISSING', 'the plan has an image, but no disk for it');
      const summary = await dumpImage({
        sourcePath: source.path,
        fileSizeBytes: image.fileSizeBytes,
        targetPath: target.path,
        targetSizeBytes: target.sizeBytes,
        isTargetBlank,
        format: image.format ?? null,
        driver: 'host_device',
        reporter,
      });
      // Hooks find the image's partitions as devices; scripts and mounts read them later.
      if (hooks) await rereadPartitions(plan, at);
      return summary;
    },
  };
}

interface MountOptions extends Pick<PlanStagesOptions, 'plan' | 'at' | 'world'> {
  /** True with hooks that work in the instance, or beside it. */
  readonly mayExecute: boolean;
}

function createMountStage({ plan, at, world, mayExecute }: MountOptions): Stage {
  return {
    name: 'mount',
    async run(reporter) {
      await unmountLeft(await world.opened(), reporter);
      await rereadPartitions(plan, at);
      const fileSystems = await listFileSystems(plan, at);
      const summary = await mountInstance(fileSystems, mayExecute, reporter);
      if (mayExecute) await (await world.open()).show(TARGET_PATH);
      return summary;
    },
  };
}

function createPersonalizeStage(host: HostClient): Stage {
  return {
    name: 'personalize',
    async run(reporter) {
      const { entries, bytes } = await overlayPackage(
        await host.openPackage(),
        TARGET_PATH,
        (line) => reporter.log(line),
      );
      return `${entries} entries, ${bytes} bytes of files`;
    },
  };
}

function createUnmountStage({ plan, at, world }: Omit<MountOptions, 'mayExecute'>): Stage {
  return {
    name: 'unmount',
    async run(reporter) {
      await unmountLeft(await world.opened(), reporter);
      return await unmountDisks(plan, at, reporter);
    },
  };
}

/** Also flushes writes of scripts from the cache. */
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
