import type { InstanceRecord } from '#shared/contract/instance.ts';
import { SERVICE_IPV4, SERVICE_URL } from '#shared/contract/service-address.ts';

type Described = Pick<
  InstanceRecord,
  'name' | 'communication' | 'channel' | 'dialects' | 'sshKeys' | 'userData' | 'hvparams'
>;

/**
 * Limits the SMBIOS bytes of keys. All tables together have 64 KiB, and QEMU needs about 20 KiB for
 * the maximum of processors and memory.
 */
const MAX_KEYS_BYTES = 16 * 1024;

/** Paths in the EC2 tree. Public addresses are left out, since none exist. */
const IMDS: Readonly<Record<string, string>> = {
  'imds.vendor': 'gnt',
  'imds.vendor_token': `${SERVICE_URL}/latest/api/token`,
  'imds.refresh_header_name': 'X-aws-ec2-metadata-token-ttl-seconds',
  'imds.data_url': `${SERVICE_URL}/latest`,
  'imds.token_header_name': 'X-aws-ec2-metadata-token',
  'imds.address_ipv4': SERVICE_IPV4,
  'imds.key_hostname': '/meta-data/hostname',
  'imds.key_region': '/meta-data/placement/region',
  'imds.key_zone': '/meta-data/placement/availability-zone',
  'imds.key_ssh_key': '/meta-data/public-keys/0/openssh-key',
  'imds.key_userdata': '/user-data',
};

/** Lets `systemd-imds` and other clients of systemd reach the service. */
const IMDS_SOCKET = 'systemd-imdsd.socket';
/**
 * Imports credentials from user data. The unit waits for the network before sysinit.target. In
 * guests with NetworkManager that is a cycle, which systemd breaks by dropping jobs. It is enabled
 * only if there is user data to import; name and keys do not need it.
 */
const IMDS_IMPORT = 'systemd-imds-import.service';

/**
 * Returns SMBIOS strings that a guest's systemd reads before it has a network: the address of the
 * metadata service (261 and later), the host name (254), root's SSH keys (252), and DHCP on the
 * channel's NIC (256, with systemd-networkd). Other guests ignore them, and settings on the disk
 * win. They stay until power-off: bootstrap facts, never a secret. See
 * systemd.system-credentials(7). Pure.
 */
export function planSystemdCredentials(instance: Described): readonly string[] {
  if (!instance.communication || instance.hvparams.systemd_credentials === 'no') return [];
  const [hostName = ''] = instance.name.split('.');
  const keys = fittingKeys(instance.sshKeys);
  return Object.entries({
    'system.hostname': hostName,
    ...(keys !== '' && { 'ssh.authorized_keys.root': keys }),
    'network.network.50-gnt': channelNetwork(instance.channel.mac),
    ...(instance.dialects.includes('ec2') && {
      ...IMDS,
      'systemd.unit-dropin.sysinit.target': `[Unit]\nWants=${wantedUnits(instance).join(' ')}\n`,
    }),
  }).map(([name, value]) => encodeCredential(name, value));
}

function wantedUnits({ userData }: Described): readonly string[] {
  const text = userData === null ? '' : Buffer.from(userData, 'base64').toString();
  const isForSystemd =
    text.startsWith('#systemd-userdata\n') || /^\s*\{[^]*"systemd\.credentials"/.test(text);
  return isForSystemd ? [IMDS_SOCKET, IMDS_IMPORT] : [IMDS_SOCKET];
}

/** Returns the first keys that fit together. */
function fittingKeys(keys: readonly string[]): string {
  let text = '';
  for (const key of keys) {
    if (Buffer.byteLength(text) + Buffer.byteLength(key) + 1 > MAX_KEYS_BYTES) break;
    text += `${key}\n`;
  }
  return text;
}

/** Returns the network file of the channel's NIC. A guest's own file with a lower name wins. */
function channelNetwork(mac: string): string {
  return `[Match]
MACAddress=${mac}

[Network]
DHCP=ipv4
LinkLocalAddressing=ipv6
IPv6AcceptRA=no
`;
}

/**
 * Encodes a credential, in base64 unless it is one line of ASCII, as an SMBIOS string should be.
 */
function encodeCredential(name: string, value: string): string {
  const isLine = /^[\x20-\x7e]*$/.test(value);
  return isLine
    ? `io.systemd.credential:${name}=${value}`
    : `io.systemd.credential.binary:${name}=${Buffer.from(value).toString('base64')}`;
}
