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
 * What was given for an instance that nobody is going to read, in words; null when everything has
 * a reader. Without the channel a guest is served nothing in normal runs; scripts of an OS
 * definition have its parameters all the same, and a medium reads while it installs. Pure.
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
 * Which secrets were given to an instance that does not run: their names are stored, and nothing
 * else; null when none was. Pure.
 */
export function describeUnkept({
  osParametersSecret,
}: Pick<Given, 'osParametersSecret'>): string | null {
  if (!hasValue(osParametersSecret)) return null;
  return 'values of --os-parameters-secret are never stored, and the instance is stopped: give them again to gnt-instance startup or reinstall';
}

/**
 * What a new instance lacks by which anybody could get to its guest; null when there is one way in.
 * Pure.
 */
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

/** A null takes back what is stored. */
function hasValue(values: Readonly<Record<string, string | null>> | undefined): boolean {
  return Object.values(values ?? {}).some((value) => value !== null);
}
