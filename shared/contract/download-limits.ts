import { GIB } from '../units/bytes.ts';
import type { ClusterRecord } from './api.ts';

/** Limits and trust of downloads on the node: the cluster's settings, or defaults. */
export interface DownloadLimits {
  /** Largest published image, in bytes. */
  readonly maxImageBytes: number;
  /** Seconds for a whole download with all attempts; 0: no limit. */
  readonly timeoutS: number;
  /** Minimum bytes per second while waiting for a server; 0: no limit. */
  readonly minRate: number;
  /** PEM certificates that are trusted for https, in addition to the system's. */
  readonly certificateAuthority?: string | undefined;
  /** Names, addresses and networks outside the internet that URLs of the remote API may have. */
  readonly remoteHosts: readonly string[];
}

/** Much larger than published cloud and desktop images. 64 GiB in six hours are 3 MiB/s. */
const DEFAULTS: DownloadLimits = {
  maxImageBytes: 64 * GIB,
  timeoutS: 6 * 3600,
  minRate: 4096,
  remoteHosts: [],
};

export function downloadLimitsOf(
  cluster: Pick<
    ClusterRecord,
    'maxImageBytes' | 'downloadTimeoutS' | 'minDownloadRate' | 'imageCa' | 'remoteHosts'
  >,
): DownloadLimits {
  return {
    maxImageBytes: cluster.maxImageBytes ?? DEFAULTS.maxImageBytes,
    timeoutS: cluster.downloadTimeoutS ?? DEFAULTS.timeoutS,
    minRate: cluster.minDownloadRate ?? DEFAULTS.minRate,
    certificateAuthority: cluster.imageCa,
    remoteHosts: cluster.remoteHosts ?? DEFAULTS.remoteHosts,
  };
}
