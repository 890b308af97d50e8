import type { InstanceRecord } from '#shared/contract/instance.ts';
import { SERVICE_IPV4, SERVICE_URL } from '#shared/contract/service-address.ts';

type Described = Pick<
  InstanceRecord,
  'name' | 'communication' | 'channel' | 'dialects' | 'sshKeys' | 'userData' | 'hvparams'
>;

/**
 * Bytes of SMBIOS that keys may take. All tables together have 64 KiB, of which QEMU needs some
 * twenty for the most processors and memory.
 */
const MAX_KEYS_BYTES = 16 * 1024;

/** Where things are in the EC2 tree; public addresses are left out, since there are none. */
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

/** Lets `systemd-imds` and whoever else asks systemd reach the service. */
const IMDS_SOCKET = 'systemd-imdsd.socket';
/**
 * Takes credentials out of user data. It waits for the network before sysinit.target, which is a
 * circle in guests of NetworkManager: systemd breaks it by leaving out jobs. Hence only where there
 * is something for it; name and keys it needs not fetch.
 */
const IMDS_IMPORT = 'systemd-imds-import.service';

/**
 * SMBIOS strings by which a guest's systemd learns, before any network, where the metadata service
 * is (261 and later), what the guest's name is (254), who may log in as root (252), and that the
 * channel's NIC asks by DHCP (256, where systemd-networkd runs). Other guests do not read them; in
 * one that does, what the disk says comes first. They are fixed until the power is cut: bootstrap
 * facts, never a secret. See systemd.system-credentials(7). Pure.
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

/** The first keys that have room together. */
function fittingKeys(keys: readonly string[]): string {
  let text = '';
  for (const key of keys) {
    if (Buffer.byteLength(text) + Buffer.byteLength(key) + 1 > MAX_KEYS_BYTES) break;
    text += `${key}\n`;
  }
  return text;
}

/** It counts where the guest has none of its own for this NIC: one of a lower name comes first. */
function channelNetwork(mac: string): string {
  return `[Match]
MACAddress=${mac}

[Network]
DHCP=ipv4
LinkLocalAddressing=ipv6
IPv6AcceptRA=no
`;
}

/** Text of several lines is told in base64: an SMBIOS string is a line by intent. */
function encodeCredential(name: string, value: string): string {
  const isLine = /^[\x20-\x7e]*$/.test(value);
  return isLine
    ? `io.systemd.credential:${name}=${value}`
    : `io.systemd.credential.binary:${name}=${Buffer.from(value).toString('base64')}`;
}
