import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import type { HookPoint } from '#shared/contract/primitives.ts';
import { diskSerial, dumpSerial, IMAGE_SERIAL } from '../../storage/disk-serials.ts';

export interface PlannedScript {
  readonly name: 'create' | 'import' | 'export' | 'rename';
  /** Path within the packed definition. */
  readonly path: string;
  /** Environment without OS parameters (OSP_*), which the agent fetches. */
  readonly environment: Readonly<Record<string, string>>;
  readonly verify?: string;
  readonly dumps?: readonly { readonly disk: number; readonly sizeBytes: number }[];
}

export interface InstallPlanInput {
  readonly instance: InstanceRecord;
  readonly installId: string;
  readonly imageSizeBytes: number | null;
  readonly hasPackage: boolean;
  readonly script: PlannedScript | null;
  readonly hookPoints?: readonly HookPoint[] | undefined;
  readonly hooks?: readonly HookDocument[];
  /** The appliance inspects the content and writes nothing. */
  readonly isLook?: boolean | undefined;
}

/**
 * Plans the work of the appliance. Pure. The plan has no OS parameters, so it can be shown and
 * logged.
 */
export function planInstall(input: InstallPlanInput): InstallPlan {
  const { instance } = input;
  return {
    version: 1,
    installId: input.installId,
    instance: instance.name,
    disks: instance.disks.map((disk, index) => ({
      serial: diskSerial(index),
      sizeBytes: disk.sizeBytes,
    })),
    image:
      input.imageSizeBytes === null
        ? null
        : {
            serial: IMAGE_SERIAL,
            fileSizeBytes: input.imageSizeBytes,
            ...(instance.osImageFormat !== null && { format: instance.osImageFormat }),
            grow: instance.osImageGrow,
            // An installation begins with emptied disks, and the first appliance writes the image.
            isDiskBlank: true,
          },
    scripts: input.script === null ? null : planScript(input.script),
    personalization: input.hasPackage ? { format: 'tar.gz' } : null,
    ...(input.isLook === true && { isLook: true }),
    ...(input.hookPoints && {
      hooks: {
        points: [...input.hookPoints],
        hasDocuments: input.hooks !== undefined && input.hooks.length > 0,
      },
    }),
  };
}

function planScript({
  name,
  path,
  environment,
  verify,
  dumps,
}: PlannedScript): NonNullable<InstallPlan['scripts']> {
  return {
    script: name,
    path,
    environment: { ...environment },
    ...(verify !== undefined && { verify }),
    ...(dumps && {
      dumps: dumps.map(({ disk, sizeBytes }) => ({ disk, sizeBytes, serial: dumpSerial(disk) })),
    }),
  };
}
