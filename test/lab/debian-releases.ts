import { chooseAptSources, readAptSources } from '../../appliance/image/apt-sources.ts';
import { makeDebianTree } from '../../appliance/image/debian-tree.ts';
import { cachedTree } from './cached-tree.ts';

/** Releases that the package is tested on. */
export const HOST_RELEASES = ['bookworm', 'trixie'] as const;
export type HostRelease = (typeof HOST_RELEASES)[number];

/** Debian's stable release, and the newest packages that were tested together. */
export const NEWER_RELEASES = ['trixie', 'testing'] as const;
export type NewerRelease = (typeof NEWER_RELEASES)[number];

/** Packages of Debian's own cloud images, with netplan for systemd-networkd. */
const PACKAGES = [
  ...['ca-certificates', 'cloud-init', 'curl', 'dbus', 'dhcpcd-base', 'e2fsprogs'],
  ...['initramfs-tools', 'iproute2', 'kmod', 'linux-image-cloud-amd64', 'netbase', 'netplan.io'],
  ...['network-manager', 'openssh-server', 'passwd', 'procps', 'systemd-sysv', 'udev', 'zstd'],
];
const MORE_PACKAGES: Readonly<Record<NewerRelease, readonly string[]>> = {
  trixie: [],
  testing: ['systemd-imds'],
};
const EXCLUDED_PATHS = ['doc', 'info', 'locale', 'man'].map((name) => `/usr/share/${name}/*`);
/** Builds an initramfs that finds a virtio disk. */
const INITRAMFS = [
  `--essential-hook=mkdir -p "$1/etc/initramfs-tools/conf.d"`,
  String.raw`--essential-hook=printf 'MODULES=list\nCOMPRESS=zstd\nCOMPRESSLEVEL=3\nFSTYPE=ext4\n' >"$1/etc/initramfs-tools/conf.d/guest"`,
  String.raw`--essential-hook=printf 'virtio_pci\nvirtio_blk\next4\n' >"$1/etc/initramfs-tools/modules"`,
  '--dpkgopt=force-confold',
];
const IDLE_UNITS = [
  ...['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer'],
  ...['e2scrub_reap.service', 'fstrim.timer'],
].join(' ');
/** Enables the units of our guests too. */
const SETUP = [
  ...INITRAMFS,
  // Not in Debian's images. Here it is one of the DHCP clients and only started as such.
  '--customize-hook=systemctl --root "$1" mask NetworkManager.service NetworkManager-wait-online.service',
  '--customize-hook=systemctl --root "$1" mask ' + IDLE_UNITS,
  '--customize-hook=systemctl --root "$1" enable systemd-networkd.service',
  `--customize-hook=: >"$1/etc/machine-id"; : >"$1/etc/resolv.conf"; echo localhost >"$1/etc/hostname"`,
];

/**
 * Returns a root with stock cloud-init, systemd and a kernel of a release newer than the
 * appliance's. It is made once and kept in the build cache.
 * @returns its path; do not write below it
 */
export function newerDebianTree(release: NewerRelease): Promise<string> {
  const packages = [...PACKAGES, ...MORE_PACKAGES[release]];
  return cachedTree(`debian-${release}`, [...packages, ...EXCLUDED_PATHS, ...SETUP], (root) =>
    makeDebianTree(root, {
      suite: release,
      variant: 'minbase',
      packages,
      excludedPaths: EXCLUDED_PATHS,
      // An outdated mirror is sufficient; its content is still signed.
      options: [...SETUP, '--aptopt=Acquire::Check-Valid-Until "false"'],
      sources: [`deb ${hostMirror()} ${release} main`],
      proxyEnvironment: {},
    }),
  );
}

/** A minimal Debian with systemd and a kernel. */
const HOST_PACKAGES = [
  'initramfs-tools',
  'kmod',
  'linux-image-cloud-amd64',
  'systemd-sysv',
  'udev',
];
/**
 * Useless in a short-lived machine. dpkg does not know of the removal, so that packages stay
 * installed.
 */
const HOST_WASTE = ['doc', 'info', 'locale', 'man']
  .map((name) => `"$1"/usr/share/${name}/*`)
  .join(' ');
const HOST_SETUP = [
  ...INITRAMFS,
  `--customize-hook=systemctl --root "$1" mask ${IDLE_UNITS}`,
  `--customize-hook=: >"$1/etc/machine-id"; echo node1.example.com >"$1/etc/hostname"; echo 127.0.1.1 node1.example.com >>"$1/etc/hosts"`,
  `--customize-hook=rm -rf ${HOST_WASTE}`,
];

/**
 * Returns the root of a host, made once and kept in the build cache.
 * @param packages in addition to the bootable system
 * @returns its path; do not write below it
 */
export function hostTree(release: HostRelease, packages: readonly string[]): Promise<string> {
  return makeHost(`host-${release}`, { release, packages, setup: HOST_SETUP, components: 'main' });
}

/**
 * Builds the modules as Debian's dkms does for a new kernel, because the running kernel is another
 * one.
 */
const MODULE_SETUP = [
  `--customize-hook=chroot "$1" sh -ec 'for there in /lib/modules/*; do version=$(basename "$there"); dkms autoinstall -k "$version"; depmod "$version"; modinfo -k "$version" zfs >/var/log/zfs-module; done'`,
  // Only needed by the compiler.
  '--customize-hook=rm -rf "$1"/usr/src/* "$1"/var/lib/dkms/* "$1"/usr/lib/gcc/*',
];

/**
 * Returns the root of a host with OpenZFS. Compiling its module takes minutes of processor time.
 */
export function zfsHostTree(packages: readonly string[]): Promise<string> {
  return makeHost('host-zfs-bookworm', {
    release: 'bookworm',
    packages: ['linux-headers-cloud-amd64', 'zfs-dkms', 'zfsutils-linux', ...packages],
    setup: [...HOST_SETUP, ...MODULE_SETUP],
    components: 'main contrib',
  });
}

/** Packages that the tests of our packages need beside Ganeti. */
const GANETI_PACKAGES = ['bash-completion', 'ganeti', 'libatomic1', 'logrotate', 'systemd'];
/** Also keeps apt's lists, so that apt resolves dependencies without a network. */
const GANETI_SETUP = [
  '--skip=cleanup/apt/lists',
  `--customize-hook=rm -rf ${HOST_WASTE}`,
  '--aptopt=Acquire::Check-Valid-Until "false"',
];

/**
 * Returns a root in which Debian's ganeti is installed, made once and kept in the build cache.
 * @returns its path; do not write below it
 */
export function ganetiTree(release: HostRelease): Promise<string> {
  return cachedTree(`ganeti-${release}`, [...GANETI_PACKAGES, ...GANETI_SETUP], (root) =>
    makeDebianTree(root, {
      suite: release,
      variant: 'minbase',
      packages: GANETI_PACKAGES,
      excludedPaths: [],
      options: GANETI_SETUP,
      sources: [`deb ${hostMirror()} ${release} main`],
      proxyEnvironment: {},
    }),
  );
}

interface Host {
  readonly release: HostRelease;
  readonly packages: readonly string[];
  /** Options of mmdebstrap. */
  readonly setup: readonly string[];
  readonly components: string;
}

function makeHost(name: string, { release, packages, setup, components }: Host): Promise<string> {
  const all = [...HOST_PACKAGES, ...packages];
  return cachedTree(name, [...all, ...setup], (root) =>
    makeDebianTree(root, {
      suite: release,
      variant: 'minbase',
      packages: all,
      excludedPaths: [],
      options: [...setup, '--aptopt=Acquire::Check-Valid-Until "false"'],
      sources: [`deb ${hostMirror()} ${release} ${components}`],
      proxyEnvironment: {},
    }),
  );
}

/** Returns the mirror of this host's own packages. */
function hostMirror(): string {
  const [, uri = ''] = chooseAptSources(readAptSources())[0]?.split(' ') ?? [];
  return uri;
}
