import { z } from 'zod';

/** Seconds for an installation, an export or another OS script; 0: no limit. */
export const installTimeout = z.number().int().nonnegative().max(1e9);

/** The default limit ends media and scripts that hang. */
export const DEFAULT_INSTALL_TIMEOUT_S = 4 * 3600;

/** Returns seconds, 0 for no limit: from the command, else the instance, else the cluster. Pure. */
export function installTimeoutOf(
  command: { readonly installTimeoutS?: number | undefined },
  instance: { readonly installTimeoutS: number | null },
  cluster: { readonly installTimeoutS: number },
): number {
  return command.installTimeoutS ?? instance.installTimeoutS ?? cluster.installTimeoutS;
}
