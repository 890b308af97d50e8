import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HookPoint } from '#shared/contract/primitives.ts';
import type { DumpFile } from '../../instances/backup/export-store.ts';
import type { InstallContent } from '../../instances/view/plan-view.ts';
import type { OsSelection } from '../os/os-registry.ts';
import { packDefinition } from '../os/pack-definition.ts';
import { planInstanceEnvironment } from '../os/instance-environment.ts';
import type { ScriptOperation } from '../os/script-environment.ts';
import { diskPathInAppliance } from '../../storage/disk-serials.ts';
import { planInstall, type PlannedScript } from './plan-install.ts';

export interface InstallContentInput {
  readonly instance: InstanceRecord;
  readonly os: OsSelection | null;
  readonly operation: ScriptOperation;
  readonly installId: string;
  /** Path within the definition. */
  readonly script: string | null;
  readonly imageSizeBytes: number | null;
  readonly hasPackage: boolean;
  /** The appliance inspects the content and writes nothing. */
  readonly isLook?: boolean | undefined;
  /**
   * Stages of this appliance that have hooks; undefined when the instance installs itself from a
   * medium.
   */
  readonly hookPoints?: readonly HookPoint[] | undefined;
  readonly hooks: readonly HookDocument[];
  /** Dumps for `import` to read or `export` to write. */
  readonly dumps?: readonly DumpFile[];
}

/** Builds install/ and os/ of the metadata service for one appliance or medium. */
export async function buildInstallContent(input: InstallContentInput): Promise<InstallContent> {
  const { instance, os, script } = input;
  const packed = os !== null && script !== null ? await packDefinition(os.definition) : null;
  const environment =
    os === null
      ? {}
      : planInstanceEnvironment({
          instance,
          os,
          operation: input.operation,
          runsIn: 'appliance',
          diskPath: diskPathInAppliance,
        });
  return {
    plan: planInstall({
      instance,
      installId: input.installId,
      imageSizeBytes: input.imageSizeBytes,
      hasPackage: input.hasPackage,
      script: script === null ? null : { ...planScript(input), path: script, environment },
      hooks: input.hooks,
      hookPoints: input.hookPoints,
      isLook: input.isLook,
    }),
    scripts: new Map(Object.entries(packed?.scripts ?? {})),
    definitionTar: packed?.tar ?? null,
    imageSizeBytes: input.imageSizeBytes,
    hasPackage: input.hasPackage,
    ...(input.hookPoints && input.hooks.length > 0 && { hooks: input.hooks }),
  };
}

/**
 * Plans the script. An untrusted `verify` runs in the appliance too, before anything is written.
 */
function planScript({
  os,
  operation,
  dumps,
}: InstallContentInput): Pick<PlannedScript, 'name' | 'verify' | 'dumps'> {
  const verify = os?.definition.applianceScripts.verify;
  const installs = operation.script === 'create' || operation.script === 'import';
  return {
    name: operation.script,
    ...(installs && verify !== undefined && { verify }),
    ...(dumps && dumps.length > 0 && { dumps }),
  };
}
