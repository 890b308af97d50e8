import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { GLOBAL_PROFILE, type ProfileRecord } from '#shared/contract/profile.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { mergeSharedParameters } from '../instances/record/merge-changes.ts';
import { refuseDuplicateParameters } from '../instances/record/plan-record.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { JobHandler } from '../jobs/job-handler.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import type { ProfileChange } from '../records/profile-repository.ts';
import type { OperationDependencies } from './operation-dependencies.ts';

/** Each view of an instance reads its profiles as a whole. */
const MAX_PARAMETERS = 1000;
/**
 * Bytes of names and values of a profile: a view has room for `global` and the most profiles of an
 * instance.
 */
const MAX_PROFILE_BYTES = MIB;
const MAX_PROFILES = 1000;

/**
 * Changes a profile. Running instances see the change with their next view: at a start or a modify.
 */
export function modifyProfileHandler({
  clusters,
}: Pick<OperationDependencies, 'clusters'>): JobHandler<OpcodeOf<'PROFILE_SET_PARAMS'>> {
  return {
    prepare: async (opcode) => {
      const { name, osParameters, osParametersPrivate } = opcode;
      if (Object.keys({ ...osParameters, ...osParametersPrivate }).length === 0) {
        throw new AppError('USAGE', 'no change was given', {
          hint: 'Give -O or --os-parameters-private',
        });
      }
      refuseDuplicateParameters(opcode);
      const profiles = await clusters.listProfiles();
      const change = (profile: ProfileRecord): ProfileRecord =>
        requireRoom({ ...profile, ...mergeSharedParameters(profile, opcode) });
      tryChanges([{ name, change }], profiles);
      return async () => {
        await clusters.updateProfile(name, change);
        return { name };
      };
    },
  };
}

/**
 * Tries changes without applying them. Refuses too many profiles, and everything that a change
 * itself refuses.
 * @throws AppError VALIDATION, or the error of a change
 */
export function tryChanges(
  changes: readonly ProfileChange[],
  profiles: readonly ProfileRecord[],
): void {
  const names = new Set([...profiles, ...changes].map(({ name }) => name));
  if (names.size > Math.max(MAX_PROFILES, profiles.length)) {
    throw new AppError('VALIDATION', `there would be ${names.size} profiles`, {
      hint: `The limit is ${MAX_PROFILES}.`,
    });
  }
  for (const { name, change } of changes) {
    const current = profiles.find((profile) => profile.name === name);
    change(current ?? { schema: 1, name, osParameters: {}, osParametersPrivate: {} });
  }
}

/** @throws AppError VALIDATION */
export function requireRoom(profile: ProfileRecord): ProfileRecord {
  const { name, osParameters, osParametersPrivate } = profile;
  const parameters = Object.entries({ ...osParameters, ...osParametersPrivate });
  if (parameters.length > MAX_PARAMETERS) {
    throw new AppError(
      'VALIDATION',
      `profile '${name}' would have ${parameters.length} parameters`,
      {
        hint: `The limit is ${MAX_PARAMETERS}.`,
      },
    );
  }
  const bytes = parameters.reduce((sum, pair) => sum + Buffer.byteLength(pair.join('')), 0);
  if (bytes <= MAX_PROFILE_BYTES) return profile;
  throw new AppError('VALIDATION', `profile '${name}' would have ${bytes} bytes`, {
    hint: `The limit is ${MAX_PROFILE_BYTES}: set large values on the instances that need them.`,
  });
}

export function removeProfileHandler({
  clusters,
  instances,
}: Pick<OperationDependencies, 'clusters' | 'instances'>): JobHandler<OpcodeOf<'PROFILE_REMOVE'>> {
  return {
    prepare: async ({ name }) => {
      await refuseUnknownProfiles([name], clusters);
      const refuse = (): Promise<void> => refuseUsed(name, instances);
      await refuse();
      return async () => {
        await clusters.removeProfile(name, refuse);
        return { name };
      };
    },
  };
}

/** @throws AppError CONFLICT */
async function refuseUsed(
  name: string,
  instances: Pick<OperationDependencies['instances'], 'list'>,
): Promise<void> {
  const users = (await instances.list()).filter(({ profiles }) => profiles.includes(name));
  if (users.length === 0) return;
  const names = users.map((user) => user.name);
  throw new AppError('CONFLICT', `profile '${name}' is used by ${names.join(', ')}`, {
    details: { name, instances: names },
    hint: 'Assign others, or none: gnt-instance modify --profiles LIST NAME',
  });
}

/** @throws AppError NOT_FOUND with the nearest name */
export async function refuseUnknownProfiles(
  names: readonly string[],
  clusters: Pick<ClusterRepository, 'loadProfile' | 'listProfiles'>,
): Promise<void> {
  for (const name of names) {
    if ((await clusters.loadProfile(name)) !== undefined) continue;
    const known = (await clusters.listProfiles()).map((profile) => profile.name);
    const near = suggest(
      name,
      known.filter((one) => one !== GLOBAL_PROFILE),
    );
    throw new AppError('NOT_FOUND', `there is no profile '${name}'`, {
      details: { name },
      hint: near === null ? `Create it: gnt-profile add ${name} -O …` : `Did you mean ${near}?`,
    });
  }
}
