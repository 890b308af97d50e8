import { basename } from 'node:path';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { MovedFile } from '#shared/contract/move.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MAX_VARIABLES_BYTES, variablesPath } from '../../storage/firmware-variables.ts';
import { diskPath } from '../../storage/install-disks.ts';

/**
 * Refuses files other than all disks of the instance in their admitted sizes, and its firmware
 * variables.
 * @throws AppError VALIDATION
 */
export function requireItsFiles(
  { name: instance, disks, instanceId }: Pick<InstanceRecord, 'name' | 'disks' | 'instanceId'>,
  files: readonly MovedFile[],
): void {
  const missing = new Map(
    disks.map(({ sizeBytes }, index) => [basename(diskPath('', index)), sizeBytes]),
  );
  let variables: string | undefined = basename(variablesPath('', instanceId));
  for (const { name, sizeBytes } of files) {
    if (name === variables && sizeBytes <= MAX_VARIABLES_BYTES) variables = undefined;
    else if (missing.get(name) === sizeBytes) missing.delete(name);
    else throw isNotIts(`${name} with ${sizeBytes} bytes is not one of its files`, instance);
  }
  const [first] = missing.keys();
  if (first !== undefined) throw isNotIts(`${first} is missing`, instance);
}

function isNotIts(what: string, instance: string): AppError {
  return new AppError(
    'VALIDATION',
    `the files sent for '${instance}' do not match its record: ${what}`,
    {
      details: { instance },
      hint: `Compare gnt-instance info ${instance} with the files on its node.`,
    },
  );
}
