import { GIB } from '../units/bytes.ts';
import type { ClusterRecord } from './api.ts';

/**
 * What a download of the host may cost, and whom it trusts; the settings of the cluster, or what
 * holds without them.
 */
export interface DownloadLimits {
  /** Largest image as it is published, in bytes. */
  readonly maxImageBytes: number;
  /** Seconds for a whole download, with all of its attempts; 0 is none. */
  readonly timeoutS: number;
  /** Bytes a second that a server has to send while it is waited for; 0 is none. */
  readonly minRate: number;
  /** PEM certificates that https servers are trusted by besides the system's. */
  readonly certificateAuthority?: string | undefined;
  /** Names, addresses and networks beside the internet that URLs of the remote API may lead to. */
  readonly remoteHosts: readonly string[];
}

/**
 * Larger than published cloud and desktop images by far; at 64 GiB in six hours a server sends 3
 * MiB/s.
 */
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
