import { isDeepStrictEqual } from 'node:util';
import type { InstanceRecord } from './instance.ts';

/** Settings that a running QEMU process has from its start. */
export const SETTINGS_OF_RUN = [
  'nics',
  'disks',
  'beparams',
  'hvparams',
  'communication',
  'seedDisk',
  'dialects',
  'bootEnv',
] as const satisfies readonly (keyof InstanceRecord)[];

export type SettingsOfRun = Pick<InstanceRecord, (typeof SETTINGS_OF_RUN)[number]>;
type Waiting = SettingsOfRun & {
  readonly partsOfRun: Partial<{
    [Key in keyof SettingsOfRun]: SettingsOfRun[Key] | undefined;
  }> | null;
};

/**
 * Returns a running instance with its present settings, in place of the settings that take
 * effect at its next start. Pure.
 */
export function asItRuns<Instance extends Waiting>(instance: Instance): Instance {
  const inEffect = Object.entries(instance.partsOfRun ?? {}).filter(
    ([, value]) => value !== undefined,
  );
  return { ...instance, ...Object.fromEntries(inEffect) };
}

/** Names the settings of a running instance that take effect at its next start. Pure. */
export function waitingSettings(instance: Waiting): readonly string[] {
  return differingSettings(asItRuns(instance), instance);
}

/** Returns `changes of NICs and memory take effect at the next start`. Pure. */
export function describeWaiting(names: readonly string[]): string {
  const list = new Intl.ListFormat('en').format(names);
  return `changes of ${list} take effect at the next start`;
}

/** Names the settings in which two states of an instance differ, for a reader. Pure. */
export function differingSettings(one: SettingsOfRun, other: SettingsOfRun): readonly string[] {
  const hvparams = Object.keys({
    ...one.hvparams,
    ...other.hvparams,
  }) as (keyof typeof one.hvparams)[];
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['NICs', one.nics, other.nics],
    ['disks', one.disks, other.disks],
    ['memory', one.beparams.memoryMiB, other.beparams.memoryMiB],
    ['vcpus', one.beparams.vcpus, other.beparams.vcpus],
    ['channel', one.communication, other.communication],
    ['seed disk', one.seedDisk, other.seedDisk],
    ['dialects', one.dialects, other.dialects],
    ['boot environment', one.bootEnv, other.bootEnv],
    ...hvparams.map((key) => [key, one.hvparams[key], other.hvparams[key]] as const),
  ];
  return pairs.filter(([, a, b]) => !isDeepStrictEqual(a, b)).map(([name]) => name);
}
