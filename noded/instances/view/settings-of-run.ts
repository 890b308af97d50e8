import { isDeepStrictEqual } from 'node:util';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { hypervisorParameters } from '#shared/contract/parameter-keys.ts';
import { SETTINGS_OF_RUN, type SettingsOfRun } from '#shared/contract/settings-of-run.ts';
import { bootEnvOfRun } from './boot-environment.ts';
import { explainDatasource, hasSeedDisk } from './cloud-init-datasource.ts';

/** Returns the settings that a QEMU process gets when it starts with this record. Pure. */
export function settingsOfStart(instance: SettingsOfRun): SettingsOfRun {
  // Each key keeps its own value; `fromEntries` only infers string and any.
  return Object.fromEntries(SETTINGS_OF_RUN.map((key) => [key, instance[key]])) as SettingsOfRun;
}

/**
 * Returns the record with the settings of its running QEMU process beside its own. Settings that
 * take effect at once count as those of the process. Pure.
 * @param run null for a stopped instance
 */
export function withSettingsOfRun(
  instance: InstanceRecord,
  run: SettingsOfRun | null,
): InstanceRecord {
  const partsOfRun = run && takeOver(run, instance);
  const isSame = isDeepStrictEqual(partsOfRun, settingsOfStart(instance));
  return { ...instance, partsOfRun: isSame ? null : partsOfRun };
}

function takeOver(run: SettingsOfRun, instance: InstanceRecord): SettingsOfRun {
  const before = { ...instance, ...run };
  // SMBIOS announces one datasource to a guest; the service offers every dialect at once.
  const isSameSource =
    explainDatasource(before).datasource === explainDatasource(instance).datasource;
  const waitsForBoot = bootEnvOfRun(before) === null && bootEnvOfRun(instance) !== null;
  return {
    ...run,
    nics: run.nics.map((nic) => renamed(nic, instance.nics)),
    disks: run.disks.map((disk) => renamed(disk, instance.disks)),
    hvparams: takeOverParameters(run.hvparams, instance.hvparams),
    seedDisk: hasSeedDisk(before) === hasSeedDisk(instance) ? instance.seedDisk : run.seedDisk,
    dialects: isSameSource ? instance.dialects : run.dialects,
    bootEnv: waitsForBoot ? run.bootEnv : instance.bootEnv,
  };
}

/** Takes over the new name of a NIC or disk, which is only in the metadata. */
function renamed<Part extends { readonly uuid: string; readonly name: string | null }>(
  part: Part,
  parts: readonly Part[],
): Part {
  const now = parts.find(({ uuid }) => uuid === part.uuid);
  return now === undefined ? part : { ...part, name: now.name };
}

type HvParameters = InstanceRecord['hvparams'];

function takeOverParameters(run: HvParameters, now: HvParameters): HvParameters {
  const waits = ([key]: readonly [string, unknown]): boolean =>
    // Keys of the schema, as both types state.
    hypervisorParameters[key as keyof HvParameters].effective === 'next start';
  return Object.fromEntries([
    ...Object.entries(run).filter(waits),
    ...Object.entries(now).filter((entry) => !waits(entry)),
  ]);
}
