import type { HookDocument } from '#shared/contract/hooks.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HookPoint } from '#shared/contract/primitives.ts';
import type { DumpFile } from '../backup/export-store.ts';
import type { InstallContent } from '../instances/plan-view.ts';
import type { OsSelection } from '../os/os-registry.ts';
import { packDefinition } from '../os/pack-definition.ts';
import { planScriptEnvironment, type ScriptOperation } from '../os/script-environment.ts';
import { diskSerial, planInstall, type PlannedScript } from './plan-install.ts';

export interface InstallContentInput {
  readonly instance: InstanceRecord;
  readonly os: OsSelection | null;
  readonly operation: ScriptOperation;
  readonly installId: string;
  /** Path of the untrusted script within its definition. */
  readonly script: string | null;
  readonly imageSizeBytes: number | null;
  readonly hasPackage: boolean;
  /** Stages of this machine that have hooks; none in one that installs itself from a medium. */
  readonly hookPoints?: readonly HookPoint[];
  readonly hooks: readonly HookDocument[];
  /** That an import reads or an export writes. */
  readonly dumps?: readonly DumpFile[];
}

/** What one machine of an installation finds under install/ and os/. */
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
          diskPath: (index) => `/dev/disk/by-id/virtio-${diskSerial(index)}`,
        });
  return {
    plan: planInstall({
      instance,
      installId: input.installId,
      imageSizeBytes: input.imageSizeBytes,
      hasPackage: input.hasPackage,
      script: script === null ? null : { ...planScript(input), path: script, environment },
      hooks: input.hooks,
      ...(input.hookPoints && { hookPoints: input.hookPoints }),
    }),
    scripts: new Map(Object.entries(packed?.scripts ?? {})),
    definitionTar: packed?.tar ?? null,
    imageSizeBytes: input.imageSizeBytes,
    hasPackage: input.hasPackage,
    ...(input.hookPoints && input.hooks.length > 0 && { hooks: input.hooks }),
  };
}

/** An untrusted `verify` judges the parameters where it may run: in the appliance, before anything is written. */
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

export interface InstanceEnvironmentInput {
  readonly instance: InstanceRecord;
  readonly os: OsSelection;
  readonly operation: ScriptOperation;
  readonly runsIn: 'appliance' | 'host';
  readonly diskPath: (index: number) => string;
}

/** Ganeti's variables of a script that works on an instance, without OSP_*. Pure. */
export function planInstanceEnvironment(input: InstanceEnvironmentInput): Record<string, string> {
  const { instance, os } = input;
  return planScriptEnvironment({
    instance: {
      name: instance.name,
      uuid: instance.uuid,
      createdAtMs: instance.createdAtMs,
      modifiedAtMs: instance.modifiedAtMs,
      primaryNode: instance.primaryNode,
      osType: instance.osType ?? '',
      hypervisor: 'kvm',
      beparams: { memory: instance.beparams.memoryMiB, vcpus: instance.beparams.vcpus },
      // Every machine has one; by this Debian's debootstrap definition puts a login on it.
      hvparams: { serial_console: true, ...scalarsOf(instance.hvparams) },
    },
    os: {
      name: os.definition.name,
      apiVersion: os.definition.apiVersion,
      variants: os.definition.variants,
      variant: os.variant,
    },
    disks: instance.disks.map((disk, index) => ({
      path: input.diskPath(index),
      sizeBytes: disk.sizeBytes,
      uuid: disk.uuid,
      name: disk.name,
      access: 'rw',
      backend: input.runsIn === 'appliance' ? 'block' : 'file:loop',
    })),
    nics: instance.nics,
    debugLevel: 0,
    runsIn: input.runsIn,
    operation: input.operation,
  });
}

function scalarsOf(values: Record<string, unknown>): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(values).filter(
      (entry): entry is [string, string | number | boolean] =>
        typeof entry[1] === 'string' ||
        typeof entry[1] === 'number' ||
        typeof entry[1] === 'boolean',
    ),
  );
}
