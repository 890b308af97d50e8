import type { ApiClient, Schemas } from '../../../client/api-client.ts';
import type { Defaults } from './install-form.ts';

type Os = Schemas['OsInfo'];

/** The proposals of the forms. */
export interface Choices {
  readonly images: readonly { readonly name: string; readonly title: string }[];
  readonly networks: readonly string[];
  readonly nodes: readonly string[];
  readonly profiles: readonly string[];
  readonly bootEnvs: readonly string[];
  /** OS definitions with their variants: OS, or OS+VARIANT. */
  readonly osTypes: readonly string[];
  readonly declaredOf: (osType: string) => Os['parameters'];
  readonly defaults: Defaults;
}

/**
 * Loads the lists of the forms. Users who are bound to instances get the lists that they may see.
 * @param seesCluster the user may see nodes and settings of the cluster
 */
export async function loadChoices(
  api: ApiClient,
  seesCluster: boolean,
  signal: AbortSignal,
): Promise<Choices> {
  const [images, networks, profiles, bootEnvs, oses, nodes, cluster] = await Promise.all([
    api.GET('/v1/images', { signal }),
    api.GET('/v1/networks', { signal }),
    api.GET('/v1/profiles', { signal }),
    api.GET('/v1/bootenvs', { signal }),
    api.GET('/v1/os', { signal }),
    seesCluster ? api.GET('/v1/nodes', { signal }) : { data: [] },
    seesCluster ? api.GET('/v1/cluster', { signal }) : { data: undefined },
  ]);
  const known = (oses.data ?? []).filter(
    ({ valid, hidden, blacklisted }) => valid && !hidden && !blacklisted,
  );
  const { diskBytes, memoryMiB, vcpus } = cluster.data?.launchDefaults ?? {};
  return {
    images: (images.data ?? []).map(({ name, catalogue, title, isShadowed }) => ({
      name: isShadowed ? `${catalogue}:${name}` : name,
      title,
    })),
    networks: namesOf(networks.data),
    nodes: namesOf(nodes.data),
    profiles: namesOf(profiles.data),
    bootEnvs: namesOf(bootEnvs.data),
    osTypes: known.flatMap(({ name, variants }) =>
      variants.length === 0 ? [name] : variants.map((variant) => `${name}+${variant}`),
    ),
    declaredOf: (osType) =>
      known.find(({ name }) => name === osType.split('+')[0])?.parameters ?? [],
    defaults: { diskBytes, memoryMiB, vcpus },
  };
}

function namesOf(list: readonly { readonly name: string }[] | undefined): readonly string[] {
  return (list ?? []).map(({ name }) => name);
}
