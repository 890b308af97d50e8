import type { OsSettings } from '#shared/contract/api.ts';
import type { ClusterRepository } from '../records/cluster-repository.ts';
import { osLayers } from '../instances/views.ts';

/** What the administrator said of an OS and of its variant. */
export interface OsPolicy {
  /** The OS by name, then with its variant. */
  readonly layers: readonly OsSettings[];
  readonly isTrusted: boolean;
  /** The cluster lets trusted scripts run on its hosts. */
  readonly allowsHostScripts: boolean;
  /** Public and private parameters that an instance need not give. */
  readonly defaults: Readonly<Record<string, string>>;
  /** Values among them that no log may show. */
  readonly privateDefaults: readonly string[];
}

export async function loadOsPolicy(osType: string, clusters: ClusterRepository): Promise<OsPolicy> {
  const [{ hostScripts }, ...layers] = await Promise.all([
    clusters.load(),
    ...osLayers(osType).map((layer) => clusters.loadOs(layer)),
  ]);
  return {
    layers,
    isTrusted: layers.some((settings) => settings.trusted),
    allowsHostScripts: hostScripts,
    defaults: Object.fromEntries(
      layers.flatMap((layer) => [
        ...Object.entries(layer.osParameters),
        ...Object.entries(layer.osParametersPrivate),
      ]),
    ),
    privateDefaults: layers.flatMap((layer) => Object.values(layer.osParametersPrivate)),
  };
}
