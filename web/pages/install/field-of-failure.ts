import type { ApiFailure } from '../../../client/api-client.ts';
import type { FormField } from './install-form.ts';

/** Fields of the operation that the node names, by the first part of their path. */
const FIELD_OF_PATH: ReadonlyMap<string, FormField> = new Map([
  ['name', 'name'],
  ['osImage', 'image'],
  ['osImageChecksum', 'image'],
  ['disks', 'size'],
  ['diskTemplate', 'diskTemplate'],
  ['nics', 'nics'],
  ['sshKeys', 'keys'],
  ['userData', 'userData'],
  ['node', 'node'],
  ['tags', 'tags'],
  ['osType', 'osType'],
  ['osParameters', 'parameters'],
  ['osParametersPrivate', 'parameters'],
  ['osParametersSecret', 'parameters'],
  ['profiles', 'profiles'],
  ['bootEnv', 'bootEnv'],
  ['personalizationPackage', 'packageSource'],
  ['personalizationChecksum', 'packageChecksum'],
  ['personalizationUser', 'packageUser'],
  ['personalizationPassword', 'packagePassword'],
  ['hooks', 'hooks'],
  ['beparams.memoryMiB', 'memory'],
  ['beparams.vcpus', 'vcpus'],
]);

/** Refusals that concern one field of the form. */
const FIELD_OF_CODE: ReadonlyMap<string, FormField> = new Map([
  ['INSTANCE_EXISTS', 'name'],
  ['IMAGE_NOT_FOUND', 'image'],
  ['IMAGE_UNREADABLE', 'image'],
  ['IMAGE_SOURCE', 'image'],
  ['IMAGE_INVALID', 'image'],
  ['IMAGE_CHECKSUM_MISMATCH', 'image'],
  ['NODE_NOT_FOUND', 'node'],
  ['NODE_OFFLINE', 'node'],
  ['NODE_DRAINED', 'node'],
  ['NODE_UNREACHABLE', 'node'],
  ['DISK_SPACE', 'size'],
  ['NO_FREE_ADDRESS', 'nics'],
  ['OS_NOT_FOUND', 'osType'],
  ['OS_INVALID', 'osType'],
  ['OS_VARIANT', 'osType'],
  ['OS_NOT_TRUSTED', 'osType'],
  ['OS_BLACKLISTED', 'osType'],
  ['OS_PARAMETER', 'parameters'],
  ['DUPLICATE_OS_PARAMETER', 'parameters'],
  ['SECRETS_NEEDED', 'parameters'],
  ['PACKAGE_SOURCE', 'packageSource'],
  ['PACKAGE_DOWNLOAD', 'packageSource'],
  ['PACKAGE_CHECKSUM_MISMATCH', 'packageChecksum'],
  ['BOOTENV_NOT_FOUND', 'bootEnv'],
  ['BOOTENV_INVALID', 'bootEnv'],
  ['BOOTENV_NO_SOURCE', 'bootEnv'],
  ['BOOTENV_RENDER', 'bootEnv'],
]);

/** Returns the field that a refusal concerns; undefined for the whole form. Pure. */
export function fieldOfFailure({
  code,
  details,
}: Pick<ApiFailure, 'code' | 'details'>): FormField | undefined {
  const { fields } = details;
  const [first] = Array.isArray(fields) ? (fields as readonly unknown[]) : [];
  if (typeof first !== 'string') return FIELD_OF_CODE.get(code);
  const [top = '', below = ''] = first.split('.');
  return FIELD_OF_PATH.get(top) ?? FIELD_OF_PATH.get(`${top}.${below}`);
}
