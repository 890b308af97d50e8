import type { InstanceRecord } from '#shared/contract/instance.ts';
import { installTimeoutOf } from '#shared/contract/install-timeout.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { takeSecrets } from '../instances/parameters/job-secrets.ts';
import { loadParameters } from '../instances/parameters/load-parameters.ts';
import { refuseTooLarge } from '../instances/parameters/os-parameters.ts';
import { checkParametersByOs } from './check-parameters-by-os.ts';
import type { OperationDependencies } from './operation-dependencies.ts';
import { selectOs } from './os-policy.ts';

/**
 * Adds names of secrets to the record. Later views of this run and of the next ones are made with
 * these names. A name with a stored value is not added: the secret replaces that value for one run.
 * Pure.
 */
export function nameSecrets(instance: InstanceRecord, given: readonly string[]): InstanceRecord {
  const { osParameters, osParametersPrivate, secretNames } = instance;
  const known = [...secretNames, ...Object.keys({ ...osParameters, ...osParametersPrivate })];
  const unknown = given.filter((name) => !known.includes(name));
  return unknown.length === 0
    ? instance
    : { ...instance, secretNames: [...secretNames, ...unknown].sort() };
}

/**
 * Judges the secrets given at a start like those of a modification. A name that the OS does not
 * have would make each later installation ask for it, and refuse it.
 * @throws AppError OS_PARAMETER, OS_NOT_FOUND, OS_INVALID
 */
export async function checkGivenSecrets(
  instance: InstanceRecord,
  opcode: OpcodeOf<'INSTANCE_STARTUP'>,
  dependencies: Pick<OperationDependencies, 'clusters' | 'hostCopies' | 'osRegistry'>,
  signal: AbortSignal,
): Promise<void> {
  const { osParameters: secrets } = takeSecrets(opcode);
  if (secrets.size === 0) return;
  const { clusters, hostCopies } = dependencies;
  const planned = nameSecrets(instance, [...secrets.keys()]);
  const parameters = await loadParameters(planned, clusters, secrets);
  refuseTooLarge(parameters);
  if (planned.osType === null) return;
  const { os, policy } = await selectOs(planned.osType, dependencies, { forceVariant: true });
  const timeoutS = installTimeoutOf({}, planned, await clusters.load());
  await checkParametersByOs(os, policy, planned, parameters, hostCopies, { signal, timeoutS });
}
