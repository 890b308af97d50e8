import { objectsVersion } from './cluster.ts';
import { type Loaded, useLoaded } from './use-loaded.ts';

/** Loads a list of the cluster, and again after each change of networks, profiles and the like. */
export function useObjects<Value>(
  load: (signal: AbortSignal) => Promise<{ readonly data?: Value | undefined }>,
): Loaded<Value> {
  return useLoaded(async (signal) => (await load(signal)).data, [objectsVersion.value]);
}
