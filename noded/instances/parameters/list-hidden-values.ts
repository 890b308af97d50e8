import type { Opcode } from '#shared/contract/opcode.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { namesInstance } from '../../jobs/opcode-traits.ts';
import type { MetadCalls } from '../../net/metad-link/metad-client.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { loadParameters, type ParameterSources } from './load-parameters.ts';
import { listHiddenValues } from './os-parameters.ts';

export interface HiddenValueSources {
  readonly instances: Pick<InstanceRepository, 'findByName'>;
  readonly clusters: ParameterSources;
  readonly metad: Pick<MetadCalls, 'secrets'>;
}

/**
 * Creates a function that lists the private and secret values of the instance that an opcode names:
 * from its record, its OS, its profiles and the metadata service.
 */
export function createListHiddenValues({ instances, clusters, metad }: HiddenValueSources) {
  return async (opcode: Opcode): Promise<readonly string[]> => {
    if (!namesInstance(opcode)) return [];
    const instance = await absentAsUndefined(instances.findByName(opcode.name));
    if (instance === undefined) return [];
    const secrets = await absentAsUndefined(metad.secrets(instance.uuid));
    return listHiddenValues(await loadParameters(instance, clusters, secrets));
  };
}

/**
 * Resolves with undefined for a missing instance: before it is added, and while the metadata
 * service does not serve it.
 */
async function absentAsUndefined<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isAppError(error, 'INSTANCE_NOT_FOUND')) return undefined;
    throw error;
  }
}
