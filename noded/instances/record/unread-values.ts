import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { hasMedium } from '../machines/plan-boot.ts';

type Reader = Pick<InstanceRecord, 'communication' | 'osType' | 'installParameters' | 'bootEnv'>;
type Given = Partial<
  Pick<
    OpcodeOf<'INSTANCE_SET_PARAMS'>,
    | 'osParameters'
    | 'osParametersPrivate'
    | 'osParametersSecret'
    | 'userData'
    | 'vendorData'
    | 'networkConfig'
    | 'sshKeys'
    | 'metadata'
    | 'seedDisk'
    | 'dialects'
    | 'metadataToken'
  >
>;

/**
 * Returns which values of a request no program will read, in words; null if all have a reader. In
 * normal runs a guest without the channel gets no metadata. OS scripts still get their parameters,
 * and an installation medium reads metadata while it installs. Pure.
 */
export function describeUnread(instance: Reader, given: Given): string | null {
  if (instance.communication || hasMedium(instance)) return null;
  const options = [
    ...(instance.osType === null ? parameterOptions(given) : []),
    ...documentOptions(given),
  ];
  if (options.length === 0) return null;
  const why =
    instance.osType === null
      ? 'communication is off, and no OS script runs'
      : 'communication is off';
  return `${options.join(', ')} will have no effect: ${why}. Serve it with --communication=yes`;
}

/**
 * Returns a warning about secrets given to a stopped instance, since only their names are stored;
 * null without secrets. Pure.
 */
export function describeUnkept({
  osParametersSecret,
}: Pick<Given, 'osParametersSecret'>): string | null {
  if (!hasValue(osParametersSecret)) return null;
  return 'values of --os-parameters-secret are never stored, and the instance is stopped: give them again to gnt-instance startup or reinstall';
}

/** Returns a warning if a new instance has no way to reach its guest; null if it has one. Pure. */
export function describeUnreached({
  communication,
  nics,
}: Pick<InstanceRecord, 'communication'> & { readonly nics: readonly unknown[] }): string | null {
  if (communication || nics.length > 0) return null;
  return 'it has no NIC, no channel in normal runs and no SSH key: only its console gives access. gnt-instance add takes --net 0:mode=user, --communication=yes and --ssh-key FILE; gnt-instance launch sets all three';
}

function parameterOptions(given: Given): readonly string[] {
  return optionsOf([
    ['--os-parameters', hasValue(given.osParameters)],
    ['--os-parameters-private', hasValue(given.osParametersPrivate)],
    ['--os-parameters-secret', hasValue(given.osParametersSecret)],
  ]);
}

function documentOptions(given: Given): readonly string[] {
  return optionsOf([
    ['--user-data', given.userData != null],
    ['--vendor-data', given.vendorData != null],
    ['--network-config', given.networkConfig != null],
    ['--ssh-key', (given.sshKeys ?? []).length > 0],
    ['--metadata', hasValue(given.metadata)],
    ['--seed-disk', given.seedDisk === true],
    ['--dialects', given.dialects !== undefined],
    ['--metadata-token', given.metadataToken === 'required'],
  ]);
}

function optionsOf(all: readonly (readonly [string, boolean])[]): readonly string[] {
  return all.filter(([, isGiven]) => isGiven).map(([option]) => option);
}

/** A null removes the stored value. */
function hasValue(values: Readonly<Record<string, string | null>> | undefined): boolean {
  return Object.values(values ?? {}).some((value) => value !== null);
}
