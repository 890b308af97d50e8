import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { debianTree } from '../../lab/cached-tree.ts';
import { newerDebianTree } from '../../lab/debian-releases.ts';
import type { NewerRelease } from '../../lab/debian-releases.ts';
import { GuestTree } from './guest-tree.ts';

const PACKAGES = [
  'ca-certificates',
  'cloud-init',
  'curl',
  'ifupdown',
  'iproute2',
  'isc-dhcp-client',
  'netbase',
];

/** The Debian release of cloud-init: 22.4, 25.1, or the newest. */
export type CloudInitRelease = 'bookworm' | NewerRelease;

/**
 * Makes a Debian root with the unmodified cloud-init, once for the build cache.
 * @returns its path; it is read-only
 */
export function cloudInitTree(release: CloudInitRelease = 'bookworm'): Promise<string> {
  if (release !== 'bookworm') return newerDebianTree(release);
  const left = ['man', 'doc', 'locale'].map((name) => `/usr/share/${name}/*`);
  return debianTree('cloud-init-guest', PACKAGES, left);
}

export interface Boot {
  /** The only entry of cloud-init's datasource_list. */
  readonly datasource: 'Ec2' | 'GCE' | 'OpenStack' | 'NoCloud';
  /** dmidecode's output, by keyword (`system-serial-number`). */
  readonly dmi: Readonly<Record<string, string>>;
  /** Whether the guest has no link and no address. */
  readonly isChannelAway?: boolean;
}

/**
 * Hardware that makes cloud-init choose each of its datasources. AWS is the one with session
 * tokens.
 */
export const NOCLOUD: Boot = {
  datasource: 'NoCloud',
  dmi: { 'system-serial-number': 'ds=nocloud;s=http://169.254.169.254/nocloud/;dsmode=net' },
};
/** Nothing refers to the service: the seed disk has everything. */
export const SEED_ALONE: Boot = { datasource: 'NoCloud', dmi: {}, isChannelAway: true };
export const OPENSTACK: Boot = {
  datasource: 'OpenStack',
  dmi: { 'system-product-name': 'OpenStack Nova' },
};
export const GCE: Boot = {
  datasource: 'GCE',
  dmi: { 'system-product-name': 'Google Compute Engine' },
};
export const BRIGHTBOX: Boot = {
  datasource: 'Ec2',
  dmi: { 'system-serial-number': 'srv-x.gnt.brightbox.com' },
};
export const AWS_UUID = 'ec2a1b2c-0000-4000-8000-000000000001';
export const AWS: Boot = {
  datasource: 'Ec2',
  dmi: { 'system-uuid': AWS_UUID, 'system-serial-number': AWS_UUID },
};

export interface BootResult {
  /** /var/lib/cloud/data/result.json: the datasource in use, and errors. */
  readonly result: { readonly datasource: string; readonly errors: readonly string[] };
}

/**
 * A guest whose cloud-init runs all stages by the commands of its systemd units, without a kernel,
 * a boot loader or ds-identify.
 */
export class CloudInitGuest implements AsyncDisposable {
  readonly #tree: GuestTree;
  readonly #release: CloudInitRelease;

  private constructor(tree: GuestTree, release: CloudInitRelease) {
    this.#tree = tree;
    this.#release = release;
  }

  static async create(
    namespace: string,
    release: CloudInitRelease = 'bookworm',
  ): Promise<CloudInitGuest> {
    const tree = await GuestTree.create(await cloudInitTree(release), namespace);
    return new CloudInitGuest(tree, release);
  }

  /** Runs all stages of cloud-init, as one boot does. */
  async boot(boot: Boot): Promise<BootResult> {
    const tree = this.#tree;
    await tree.write('usr/sbin/dmidecode', dmidecodeScript(boot.dmi));
    await tree.write('usr/bin/systemd-detect-virt', '#!/bin/sh\necho none\nexit 1\n');
    // They need systemd and udev, which are absent.
    if (this.#release !== 'bookworm')
      for (const name of ['systemctl', 'udevadm'])
        await tree.write(`usr/bin/${name}`, '#!/bin/sh\nexit 0\n');
    await run('ip', ['-n', tree.namespace, '-4', 'addr', 'flush', 'dev', 'eth0']);
    await tree.run(bootScript(boot, this.#release));
    const text = await tree.read('var/lib/cloud/data/result.json');
    const { v1 } = JSON.parse(text ?? '') as { v1: BootResult['result'] };
    return { result: v1 };
  }

  /**
   * Returns the time that cloud-init of a booted guest takes for a number of empty per-boot
   * scripts.
   */
  async timePerBoot(scripts: number): Promise<number> {
    for (let at = 0; at < scripts; at += 1)
      await this.#tree.write(`var/lib/cloud/scripts/per-boot/${at + 10}-empty`, '#!/bin/sh\n:\n');
    const stdout = await this.#tree.run(`mount -t proc proc /proc
mount -t tmpfs tmpfs /run
begin=$(date +%s%N)
cloud-init single --name scripts-per-boot --frequency always >/dev/null || exit
echo $((($(date +%s%N) - begin) / 1000))
`);
    return Number(stdout.trim()) / 1000;
  }

  /**
   * Puts the files of a seed disk where cloud-init also looks for them. It reads them by the same
   * function, so no device is needed.
   */
  async placeSeed(image: string): Promise<void> {
    const directory = join(this.#tree.root, 'var/lib/cloud/seed/nocloud');
    await mkdir(directory, { recursive: true });
    await run('mcopy', ['-n', '-i', image, '::*', directory]);
  }

  /** Reads a file of the guest's disk; null without one. */
  async file(path: string): Promise<string | null> {
    return await this.#tree.read(path);
  }

  /** Returns the permissions of a file. */
  async mode(path: string): Promise<number> {
    return (await stat(join(this.#tree.root, path))).mode & 0o777;
  }

  async remove(path: string): Promise<void> {
    await rm(join(this.#tree.root, path));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tree[Symbol.asyncDispose]();
  }
}

function dmidecodeScript(dmi: Readonly<Record<string, string>>): string {
  const cases = Object.entries(dmi).map(([key, value]) => `${key}) echo '${value}' ;;`);
  return `#!/bin/sh\nfor last; do :; done\ncase $last in\n${cases.join('\n')}\n*) echo '' ;;\nesac\n`;
}

/**
 * Commands that prepare the network, start it between the local and the network stage, and stop it.
 */
const NETWORK = {
  bookworm: {
    prepare: '',
    up: `ip link set eth0 up
dhclient -4 -1 -pf /run/dhclient.pid -lf /run/dhclient.leases eth0`,
    upAgain: '',
    down: '[ ! -e /run/dhclient.pid ] || kill "$(cat /run/dhclient.pid)"',
  },
  // netplan needs a permanent MAC, which a veth does not have. cloud-init has netplan write its
  // files again in later stages too.
  newer: {
    prepare: `for program in /usr/libexec/netplan/generate /usr/libexec/netplan/configure; do
  [ -x $program ] && [ ! -e $program.own ] || continue
  mv $program $program.own
  cat >$program <<'END'
#!/bin/sh
"$0.own" "$@"
status=$?
sed -i 's/^PermanentMACAddress=/MACAddress=/' /run/systemd/network/*
exit $status
END
  chmod 755 $program
done
mkdir -p /run/systemd/network
netplan generate
start cloud-init-main & main=$!
until [ -S /run/cloud-init/share/final.sock ]; do sleep 0.1; done`,
    up: `[ ! -x /usr/libexec/netplan/configure ] || /usr/libexec/netplan/configure
/usr/lib/systemd/systemd-networkd >/var/log/networkd.log 2>&1 & networkd=$!
/usr/lib/systemd/systemd-networkd-wait-online --timeout=30
# As systemd-resolved does, which is absent.
sed -n 's/^DNS=/nameserver /p' /run/systemd/netif/links/* >/etc/resolv.conf`,
    // After NoCloud's data from the network, cloud-init applies the network again.
    upAgain: '/usr/lib/systemd/systemd-networkd-wait-online --timeout=30',
    down: 'kill $networkd $main',
  },
};
/** The guest reports the end of its boot; the brackets keep grep from finding itself. */
const UNTIL_TOLD = `while grep -qs '[b]oot/status' /proc/[0-9]*/cmdline; do sleep 0.1; done`;
/** The run list agent, if any, starts when cloud-init has ended. */
const UNTIL_UP = `if [ -e /var/lib/rightlink/agent ]; then
  tries=600
  until grep -qs -e operational -e stranded /run/rightlink/state && [ ! -s /run/rightlink/events ] || [ $((tries -= 1)) = 0 ]; do sleep 0.1; done
fi`;
const UNITS = {
  bookworm: { local: 'cloud-init-local', network: 'cloud-init' },
  newer: { local: 'cloud-init-local', network: 'cloud-init-network' },
};

function bootScript(
  { datasource, isChannelAway = false }: Boot,
  release: CloudInitRelease,
): string {
  const kind = release === 'bookworm' ? 'bookworm' : 'newer';
  const units = UNITS[kind];
  return `set -e
mount -t proc proc /proc
# Read-only, as networkd takes it that no udev will come.
mount -o ro -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/cloud-init /run/network
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
printf 'datasource_list: [ ${datasource}, None ]\n' >/run/cloud-init/cloud.cfg
[ -s /etc/machine-id ] || echo 0123456789abcdef0123456789abcdef >/etc/machine-id
start() {
  sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/$1.service /lib/systemd/system/$1.service | sort -u >/tmp/$1
  sh /tmp/$1
}
set +e
${NETWORK[kind].prepare}
start ${units.local}
${isChannelAway ? 'ip link set eth0 down' : NETWORK[kind].up}
start ${units.network}
${isChannelAway ? '' : NETWORK[kind].upAgain}
start cloud-config
# What netplan leaves there looks as if a systemd ran.
rm -rf /run/systemd/system
start cloud-final
${isChannelAway ? '' : `${UNTIL_TOLD}\n${UNTIL_UP}`}
cp /run/cloud-init/instance-data-sensitive.json /var/instance-data.json
${NETWORK[kind].down}
exit 0
`;
}
