import { MIB } from '../units/bytes.ts';
import type { ApplianceManifest } from './appliance-manifest.ts';

/** What a machine of this host can be. */
export interface ApplianceHost {
  /** As `uname -m` has it. */
  readonly architecture: string;
  readonly memoryBytes: number;
}

/** Less than any kernel starts with; as the memory of an instance. */
const MIN_MEMORY_MIB = 16;

/**
 * Why an appliance that somebody made cannot run on a host, by what its manifest says; null when
 * nothing speaks against it. Pure.
 */
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
