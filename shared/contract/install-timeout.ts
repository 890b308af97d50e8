import { z } from 'zod';

/**
 * Seconds that an installation, an export or another script of an OS may take; 0 means no limit.
 */
export const installTimeout = z.number().int().nonnegative().max(1e9);

/** What holds where nobody said anything: no medium and no script holds an instance for ever. */
export const DEFAULT_INSTALL_TIMEOUT_S = 4 * 3600;

/**
 * The command's word, then the instance's, then the cluster's. Pure. @returns seconds, 0 for none
 */
export function installTimeoutOf(
  command: { readonly installTimeoutS?: number | undefined },
  instance: { readonly installTimeoutS: number | null },
  cluster: { readonly installTimeoutS: number },
): number {
  return command.installTimeoutS ?? instance.installTimeoutS ?? cluster.installTimeoutS;
}
