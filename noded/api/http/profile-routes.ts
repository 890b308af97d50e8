import { type ProfileInfo, profileInfo, type ProfileRecord } from '#shared/contract/profile.ts';
import { redactAll } from '../../instances/describe-instance.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import type { IndexedInstance, InstanceIndex } from '../../records/instance-index.ts';
import { question, type AnyApiRoute } from './api-route.ts';

export interface ProfileRoutesDependencies {
  readonly clusters: Pick<ClusterRepository, 'listProfiles'>;
  readonly index: Pick<InstanceIndex, 'list'>;
}

export function profileRoutes(dependencies: ProfileRoutesDependencies): readonly AnyApiRoute[] {
  const { clusters, index } = dependencies;
  return [
    question('/v1/profiles', 'Lists the profiles', profileInfo.array(), async () => {
      const [profiles, instances] = await Promise.all([clusters.listProfiles(), index.list()]);
      return describeProfiles(profiles, instances);
    }),
  ];
}

/** @param instances those that they are told of */
export function describeProfiles(
  profiles: readonly ProfileRecord[],
  instances: readonly Pick<IndexedInstance, 'name' | 'profiles'>[],
): ProfileInfo[] {
  const users = new Map<string, string[]>();
  for (const instance of instances)
    for (const profile of instance.profiles) users.getOrInsert(profile, []).push(instance.name);
  return profiles.map((profile) => describeProfile(profile, users.get(profile.name) ?? []));
}

function describeProfile(profile: ProfileRecord, instances: string[]): ProfileInfo {
  const { name, osParameters, osParametersPrivate } = profile;
  const redacted = redactAll(osParametersPrivate);
  return { name, osParameters, osParametersPrivate: redacted, instances };
}
