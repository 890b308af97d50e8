import { run } from '#shared/process/run.ts';
import { newerDebianTree } from '../../lab/debian-releases.ts';
import { cloudInitTree } from './cloud-init-guest.ts';
import { GuestTree } from './guest-tree.ts';

export interface DhcpClientProgram {
  /** Name and version, for readers of a recording. */
  readonly program: string;
  readonly tree: () => Promise<string>;
  /** Shell: configures eth0 by DHCP, waits with `wait_address`, and ends its processes. */
  readonly script: string;
}

/** systemd and NetworkManager take a read-only /sys as a sign that no udev will come. */
const PREPARE = `set -e
mount -t proc proc /proc
mount -o ro -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/dbus /run/network /run/systemd/network
echo 0123456789abcdef0123456789abcdef >/etc/machine-id
wait_address() {
  for _ in $(seq 300); do
    ip -4 addr show dev eth0 | grep -q 'inet 169' && break
    sleep 0.1
  done
  ip -4 -o addr show dev eth0
  ip -4 route
}
`;

const NETWORKD = `
printf '[Match]\\nName=eth0\\n[Network]\\nDHCP=ipv4\\n' >/run/systemd/network/50-eth0.network
/usr/lib/systemd/systemd-networkd >/dev/null 2>&1 & client=$!
wait_address
kill $client
`;
const DHCPCD = `
dhcpcd -4 -1 -w eth0 >/dev/null 2>&1
wait_address
`;
const NETWORK_MANAGER = `
dbus-daemon --system --fork
profile=/etc/NetworkManager/system-connections/eth0.nmconnection
mkdir -p "\${profile%/*}" /etc/NetworkManager/conf.d
printf '[connection]\\nid=eth0\\nuuid=11111111-2222-4333-8444-555555555555\\ntype=ethernet\\ninterface-name=eth0\\n[ipv4]\\nmethod=auto\\n[ipv6]\\nmethod=link-local\\n' >$profile
chmod 600 $profile
printf '[main]\\nplugins=keyfile\\n[device]\\nmatch-device=interface-name:eth0\\nmanaged=1\\n' >/etc/NetworkManager/conf.d/eth0.conf
NetworkManager --no-daemon >/dev/null 2>&1 & client=$!
wait_address
kill $client
`;
/** With isc-dhcp-client. It releases its lease when the interface goes down. */
const IFUPDOWN = `
printf 'auto eth0\\niface eth0 inet dhcp\\n' >/etc/network/interfaces
ifup eth0 >/dev/null 2>&1
wait_address
ifdown eth0 >/dev/null 2>&1
`;

/** DHCP clients of current Linux guests, by the name of their recording. */
export const DHCP_CLIENTS: Readonly<Record<string, DhcpClientProgram>> = {
  'networkd-trixie': {
    program: 'systemd-networkd 257 of Debian trixie',
    tree: () => newerDebianTree('trixie'),
    script: NETWORKD,
  },
  'networkd-testing': {
    program: 'systemd-networkd 262 of Debian testing',
    tree: () => newerDebianTree('testing'),
    script: NETWORKD,
  },
  'dhcpcd-trixie': {
    program: 'dhcpcd 10.1 of Debian trixie',
    tree: () => newerDebianTree('trixie'),
    script: DHCPCD,
  },
  'dhcpcd-testing': {
    program: 'dhcpcd 10.5 of Debian testing',
    tree: () => newerDebianTree('testing'),
    script: DHCPCD,
  },
  'network-manager-testing': {
    program: 'NetworkManager 1.58 of Debian testing',
    tree: () => newerDebianTree('testing'),
    script: NETWORK_MANAGER,
  },
  'ifupdown-bookworm': {
    program: "ifupdown 0.8 with ISC's dhclient 4.4 of Debian bookworm",
    tree: cloudInitTree,
    script: IFUPDOWN,
  },
};

/**
 * Boots a disk twice: some clients ask for their old lease at the second boot.
 * @returns the output of `ip` for the guest's address and routes after each
 */
export async function runDhcpClient(
  client: DhcpClientProgram,
  namespace: string,
): Promise<readonly [string, string]> {
  await using guest = await GuestTree.create(await client.tree(), namespace);
  const boot = async (): Promise<string> => {
    await run('ip', ['-n', namespace, '-4', 'addr', 'flush', 'dev', 'eth0']);
    return await guest.run(PREPARE + client.script);
  };
  return [await boot(), await boot()];
}
