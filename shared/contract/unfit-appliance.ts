import { MIB } from '../units/bytes.ts';
import type { ApplianceManifest } from './appliance-manifest.ts';

/** Properties of the host. */
export interface ApplianceHost {
  /** From `uname -m`. */
  readonly architecture: string;
  readonly memoryBytes: number;
}

/** No kernel starts with less. Also the minimum memory of an instance. */
const MIN_MEMORY_MIB = 16;

/** Returns why an imported appliance cannot run on a host, from its manifest, or null. Pure. */
export function describeUnfit(
  { architecture, memoryMiB }: Pick<ApplianceManifest, 'architecture' | 'memoryMiB'>,
  host: ApplianceHost,
): string | null {
  if (architecture !== host.architecture)
    return `its architecture is ${JSON.stringify(architecture)}, but this host is ${host.architecture}`;
  const hostMiB = Math.floor(host.memoryBytes / MIB);
  if (memoryMiB > hostMiB) return `its memoryMiB of ${memoryMiB} exceeds this host's ${hostMiB}`;
  if (memoryMiB < MIN_MEMORY_MIB)
    return `its memoryMiB of ${memoryMiB} is below the minimum of ${MIN_MEMORY_MIB}`;
  return null;
}
