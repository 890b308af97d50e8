import { hasVolumes } from '#shared/contract/disk-template.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OsSelection } from './os-registry.ts';
import { planScriptEnvironment, type ScriptOperation } from './script-environment.ts';

export interface InstanceEnvironmentInput {
  readonly instance: InstanceRecord;
  readonly os: OsSelection;
  readonly operation: ScriptOperation;
  readonly runsIn: 'appliance' | 'host';
  readonly diskPath: (index: number) => string;
}

/** Returns the variables of Ganeti for a script that works on an instance, without OSP_*. Pure. */
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
      // Every instance has a serial console. Debian's debootstrap definition puts a login on it
      // when this is true.
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
      backend:
        input.runsIn === 'appliance' || hasVolumes(instance.diskTemplate) ? 'block' : 'file:loop',
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
