import type { OsSettings } from '#shared/contract/api.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { osLayerNames } from '../instances/load-parameters.ts';

/** What the administrator said of an OS and of its variant. */
export interface OsPolicy {
  /** The OS by name, then with its variant. */
  readonly layers: readonly OsSettings[];
  readonly isTrusted: boolean;
  /** The cluster lets trusted scripts run on its hosts. */
  readonly allowsHostScripts: boolean;
}

export async function loadOsPolicy(osType: string, clusters: ClusterRepository): Promise<OsPolicy> {
  const [{ hostScripts }, ...layers] = await Promise.all([
    clusters.load(),
    ...osLayerNames(osType).map((layer) => clusters.loadOs(layer)),
  ]);
  return {
    layers,
    isTrusted: layers.some((settings) => settings.trusted),
    allowsHostScripts: hostScripts,
  };
}
