import { DEFAULT_AUTOSTART } from '#shared/contract/autostart.ts';
import type { InstallChanges, InstanceRecord } from '#shared/contract/instance.ts';
import type { BeParameters } from '#shared/contract/machine-parameters.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { mergePlainSettings } from '#shared/contract/plain-settings.ts';
import { DEFAULT_DIALECTS, type Dialect } from '#shared/contract/primitives.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { GIB } from '#shared/units/bytes.ts';
import {
  datasourceDialect,
  refuseUnservedNetworkConfig,
  withoutEc2Look,
} from '../view/cloud-init-datasource.ts';
import { refuseLostDocuments } from './lost-documents.ts';
import type { NewInstance } from '../../records/instance-repository.ts';
import { mergeImage, mergePackage, noImage, noPackage } from './merge-content.ts';
import { planNic } from './change-parts.ts';
import { placeOf, type VolumePlaces } from './place-disk.ts';
import { refuseUnusableMacs } from './refuse-macs.ts';
import { sortHooks } from '../view/hook-files.ts';
import { mergeOsParameters, mergeSettings } from './merge-changes.ts';

/** Ganeti's default is 128 MiB; a distribution's installer and cloud-init need 512. */
export const DEFAULT_BACKEND_PARAMETERS: BeParameters = { memoryMiB: 512, vcpus: 1 };
export const DEFAULT_DISK_BYTES = 10 * GIB;

export interface RecordContext extends VolumePlaces {
  readonly nodeName: string;
  readonly newUuid: () => string;
  readonly newMac: (networkName?: string) => string;
}

/**
 * Returns an instance id, which is also the DMI UUID. A stock cloud-init detects EC2 if, and only
 * if, the UUID begins with `ec2`.
 */
export function newInstanceId(newUuid: () => string, dialects: readonly Dialect[]): string {
  const uuid = withoutEc2Look(newUuid());
  return datasourceDialect(dialects) === 'ec2' ? `ec2${uuid.slice(3)}` : uuid;
}

/** The fields that runs, guests and jobs fill in later, as a new instance or a copy has them. */
export const NO_PAST = {
  adminState: 'down',
  stoppedByJob: null,
  install: null,
  beforeReinstall: null,
  partsOfRun: null,
  lifecycle: null,
  guestReport: null,
  hostKeys: null,
  // With `as const` alone the type would be that of an empty tuple.
  snapshots: [] as InstanceRecord['snapshots'],
  restoreId: null,
} as const satisfies Partial<NewInstance>;

/** Returns the record of a new instance from a request. Pure. */
export function planNewInstance(
  opcode: OpcodeOf<'INSTANCE_CREATE'>,
  context: RecordContext,
): NewInstance {
  refuseUnusableMacs(opcode.nics.map((nic) => nic.mac).filter((mac) => mac !== 'auto'));
  const isDiskless = opcode.diskTemplate === 'diskless';
  const disks = isDiskless
    ? []
    : (opcode.disks.length > 0 ? opcode.disks : [{ sizeBytes: DEFAULT_DISK_BYTES }]).map(
        (disk) => ({
          uuid: context.newUuid(),
          name: disk.name ?? null,
          sizeBytes: disk.sizeBytes,
          ...placeOf(opcode.diskTemplate, context),
        }),
      );
  const record: NewInstance = {
    schema: 1,
    name: opcode.name,
    uuid: context.newUuid(),
    instanceId: newInstanceId(context.newUuid, opcode.dialects ?? DEFAULT_DIALECTS),
    primaryNode: context.nodeName,
    osType: opcode.osType ?? null,
    ...mergeImage(noImage, opcode),
    ...mergePackage(noPackage, opcode),
    safeInstall: opcode.safeInstall ?? true,
    installParameters: opcode.installParameters ?? {},
    ...mergePlainSettings('installation', opcode),
    appliance: opcode.appliance ?? null,
    installTimeoutS: opcode.installTimeoutS ?? null,
    hooks: sortHooks(opcode.hooks ?? []),
    osParameters: opcode.osParameters,
    osParametersPrivate: opcode.osParametersPrivate,
    secretNames: Object.keys(opcode.osParametersSecret).sort(),
    profiles: opcode.profiles ?? [],
    bootEnv: opcode.bootEnv ?? null,
    communication: opcode.communication,
    channelNicUuid: context.newUuid(),
    userData: opcode.userData ?? null,
    vendorData: opcode.vendorData ?? null,
    networkConfig: opcode.networkConfig ?? null,
    sshKeys: opcode.sshKeys,
    metadata: opcode.metadata,
    tags: opcode.tags,
    ...mergePlainSettings('metadata', opcode),
    diskTemplate: opcode.diskTemplate,
    disks,
    nics: opcode.nics.map((nic) => planNic(nic, context)),
    beparams: mergeSettings(DEFAULT_BACKEND_PARAMETERS, opcode.beparams),
    hvparams: opcode.hvparams,
    installState: 'created',
    runLists: opcode.runLists ?? null,
    ...NO_PAST,
    autostart: mergeSettings(DEFAULT_AUTOSTART, opcode.autostart ?? {}),
  };
  if (opcode.seedDisk === true) refuseSeedWithout(record.dialects);
  refuseUnservedNetworkConfig(record);
  refuseLostDocuments(record, record);
  return record;
}

/** @throws AppError VALIDATION */
export function refuseSeedWithout(dialects: readonly Dialect[]): void {
  if (dialects.includes('nocloud')) return;
  throw new AppError(
    'VALIDATION',
    'a seed disk needs the nocloud dialect, which --dialects leaves out',
    { hint: 'Add nocloud to --dialects, or give --seed-disk no.' },
  );
}

/**
 * Returns a record's changes by a reinstallation: the request's values over the stored ones.
 * Secrets are for this run only. Pure.
 */
export function planReinstall(
  instance: InstanceRecord,
  opcode: OpcodeOf<'INSTANCE_REINSTALL'>,
  newUuid: () => string,
): InstallChanges {
  return {
    instanceId: newInstanceId(newUuid, instance.dialects),
    osType: opcode.osType === undefined ? instance.osType : opcode.osType,
    ...mergeImage(instance, opcode),
    ...mergePackage(instance, opcode),
    safeInstall: opcode.safeInstall ?? instance.safeInstall,
    installParameters: mergeSettings(instance.installParameters, opcode.installParameters ?? {}),
    ...mergePlainSettings('installation', opcode, instance),
    appliance: opcode.appliance === undefined ? instance.appliance : opcode.appliance,
    hooks: opcode.hooks === undefined ? instance.hooks : sortHooks(opcode.hooks),
    ...mergeOsParameters(instance, opcode),
    profiles: opcode.profiles ?? instance.profiles,
    bootEnv: opcode.bootEnv === undefined ? instance.bootEnv : opcode.bootEnv,
  };
}

/** @throws AppError DUPLICATE_OS_PARAMETER naming the parameters, never their values */
export function refuseDuplicateParameters(
  opcode: Partial<
    Record<
      'osParameters' | 'osParametersPrivate' | 'osParametersSecret',
      Readonly<Record<string, string | null>>
    >
  >,
): void {
  const seen = new Map<string, number>();
  const kinds = [
    opcode.osParameters ?? {},
    opcode.osParametersPrivate ?? {},
    opcode.osParametersSecret ?? {},
  ];
  // A removal (null) in one visibility and a value in another moves a parameter.
  const given = kinds.flatMap((values) =>
    Object.entries(values).filter(([, value]) => value !== null),
  );
  for (const [name] of given) {
    seen.set(name, (seen.get(name) ?? 0) + 1);
  }
  const duplicates = [...seen].filter(([, count]) => count > 1).map(([name]) => name);
  if (duplicates.length === 0) return;
  throw new AppError(
    'DUPLICATE_OS_PARAMETER',
    `Cannot assign multiple values to OS parameters. Given in more than one visibility: ${duplicates.join(', ')}`,
    {
      details: { names: duplicates },
      hint: 'Give each parameter as public, private or secret, once.',
    },
  );
}
