/**
 * Networks with metadata and credentials of the host's own cloud: link-local addresses, then AWS
 * and Google over IPv6, Alibaba, Oracle, and Azure, whose address looks public. No guest or remote
 * user may read them through this host.
 */
export const METADATA_NETWORKS: readonly string[] = [
  ...['169.254.0.0/16', 'fe80::/10', 'fd00:ec2::254/128', 'fd20:ce::254/128'],
  ...['100.100.100.200/32', '192.0.0.192/32', '168.63.129.16/32'],
];
