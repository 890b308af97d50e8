import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';

export const SUITE = 'bookworm';
/**
 * Packages of a Debian cloud image, without some that a demonstration does not need. cloud-init
 * has the default configuration of Debian.
 */
export const PACKAGES = [
  'apt',
  'ca-certificates',
  'cloud-init',
  'curl',
  'dbus',
  'e2fsprogs',
  'ifupdown',
  'init',
  'iproute2',
  'isc-dhcp-client',
  'kmod',
  'linux-image-cloud-amd64',
  'netbase',
  'passwd',
  'procps',
  'systemd-sysv',
  'udev',
  'zstd',
];
export const EXCLUDED_PATHS = [
  '/usr/lib/udev/hwdb.d/*',
  '/usr/share/doc/*',
  '/usr/share/info/*',
  '/usr/share/locale/*',
  '/usr/share/man/*',
];
/** Modules without a device or a use in these virtual machines. */
export const REMOVED_MODULES = [
  'drivers/gpu',
  'drivers/infiniband',
  'drivers/scsi',
  'drivers/target',
  'drivers/iio',
  'fs/ocfs2',
  'fs/ceph',
  'fs/nfsd',
  'net/sctp',
  'net/tipc',
  'net/batman-adv',
];
/** Units that only take time on a machine that runs for minutes. */
export const MASKED_UNITS = [
  'apt-daily.timer',
  'apt-daily-upgrade.timer',
  'dpkg-db-backup.timer',
  'e2scrub_all.timer',
  'e2scrub_reap.service',
  'fstrim.timer',
  'getty@tty1.service',
  'systemd-pstore.service',
];
/**
 * Only modules that find the root disk: a third of the size, and unpacked in a third of the time.
 */
export const INITRAMFS_CONFIGURATION =
  'MODULES=list\nCOMPRESS=zstd\nCOMPRESSLEVEL=3\nFSTYPE=ext4\n';
export const INITRAMFS_MODULES = 'virtio_pci\nvirtio_blk\n';

const DEBOOTSTRAP_TIMEOUT_MS = 30 * 60_000;

export interface GuestRootOptions {
  readonly sources: readonly string[];
  readonly proxyEnvironment: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Makes the guest's root tree at `path`, which must not exist. @returns the kernel's version */
export async function makeGuestRoot(path: string, options: GuestRootOptions): Promise<string> {
  const signal = options.signal ?? new AbortController().signal;
  const contained = [
    '--pdeathsig',
    'KILL',
    'unshare',
    '--mount',
    '--pid',
    '--fork',
    '--kill-child=KILL',
  ];
  await run(
    'setpriv',
    [
      ...contained,
      'mmdebstrap',
      '--mode=root',
      '--variant=essential',
      '--format=directory',
      `--include=${PACKAGES.join(',')}`,
      '--aptopt=APT::Install-Recommends "false"',
      ...EXCLUDED_PATHS.map((excluded) => `--dpkgopt=path-exclude=${excluded}`),
      // In place before the kernel's own hook makes the initramfs.
      `--essential-hook=mkdir -p "$1/etc/initramfs-tools/conf.d"`,
      `--essential-hook=printf '${INITRAMFS_CONFIGURATION.replaceAll('\n', '\\n')}' >"$1/etc/initramfs-tools/conf.d/image"`,
      `--essential-hook=printf '${INITRAMFS_MODULES.replaceAll('\n', '\\n')}' >"$1/etc/initramfs-tools/modules"`,
      '--dpkgopt=force-confold',
      SUITE,
      path,
      ...options.sources,
    ],
    {
      timeoutMs: DEBOOTSTRAP_TIMEOUT_MS,
      signal,
      env: { ...options.proxyEnvironment, DEBIAN_FRONTEND: 'noninteractive' },
    },
  );
  return await configure(path);
}

async function configure(path: string): Promise<string> {
  const [kernelVersion] = await readdir(join(path, 'usr/lib/modules'));
  if (kernelVersion === undefined) throw new Error('the guest root has no kernel');
  const modules = join(path, 'usr/lib/modules', kernelVersion, 'kernel');
  for (const name of REMOVED_MODULES)
    await rm(join(modules, name), { recursive: true, force: true });
  await run('chroot', [path, '/sbin/depmod', kernelVersion]);
  await writeFile(join(path, 'etc/fstab'), 'LABEL=root / ext4 errors=remount-ro 0 0\n');
  await writeFile(join(path, 'etc/hostname'), 'localhost\n');
  await writeFile(join(path, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost ip6-localhost\n');
  await writeFile(join(path, 'etc/machine-id'), '');
  await writeFile(join(path, 'etc/resolv.conf'), '');
  // As in Debian's own images: with it set, cloud-init's locale module has nothing to generate.
  await writeFile(join(path, 'etc/default/locale'), 'LANG=C.UTF-8\n');
  await mkdir(join(path, 'etc/network/interfaces.d'), { recursive: true });
  await writeFile(
    join(path, 'etc/network/interfaces'),
    'auto lo\niface lo inet loopback\nsource /etc/network/interfaces.d/*\n',
  );
  await mkdir(join(path, 'etc/systemd/system'), { recursive: true });
  await run('systemctl', ['--root', path, 'mask', ...MASKED_UNITS]);
  for (const name of [
    'var/cache/apt',
    'var/lib/apt/lists',
    'var/log/apt',
    'var/log/bootstrap.log',
    'var/log/dpkg.log',
    'usr/lib/udev/hwdb.bin',
    'run',
  ])
    await rm(join(path, name), { recursive: true, force: true });
  for (const name of ['var/cache/apt/archives/partial', 'var/lib/apt/lists/partial', 'run'])
    await mkdir(join(path, name), { recursive: true });
  return kernelVersion;
}
