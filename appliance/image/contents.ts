/** Content of the appliance. A change here changes the key of the build cache. */

/** Debian packages besides the essential ones: for the agent, and for common OS scripts. */
export const PACKAGES = [
  'acl',
  'attr',
  'bash',
  'btrfs-progs',
  'busybox-static',
  'bzip2',
  'ca-certificates',
  'coreutils',
  'cpio',
  'curl',
  'debian-archive-keyring',
  'debootstrap',
  'dmsetup',
  'dosfstools',
  'e2fsprogs',
  'fdisk',
  'gdisk',
  'gpgv',
  'gzip',
  'iproute2',
  'kmod',
  'kpartx',
  'libatomic1',
  'libgcc-s1',
  'libstdc++6',
  'linux-image-cloud-amd64',
  'lvm2',
  'mount',
  'parted',
  'qemu-utils',
  'rsync',
  'tar',
  'util-linux',
  'xfsprogs',
  'xz-utils',
  'zstd',
];

/** Never unpacked. The kernel's hook would build an unused initramfs. */
export const EXCLUDED_PATHS = [
  '/etc/kernel/postinst.d/initramfs-tools',
  '/usr/lib/udev/hwdb.d/*',
  '/usr/share/doc/*',
  '/usr/share/info/*',
  '/usr/share/locale/*',
  '/usr/share/man/*',
];

/**
 * Removed from the root afterwards, relative to it: parts of other programs (Python and ICU come
 * with xfsprogs for `xfs_scrub`, full Perl with ca-certificates), and files that differ between two
 * builds.
 */
export const REMOVED_PATHS = [
  'boot',
  'etc/hostname',
  'etc/resolv.conf',
  'etc/initramfs-tools',
  'usr/lib/python3',
  'usr/lib/python3.11',
  'usr/lib/udev/hwdb.bin',
  'usr/lib/x86_64-linux-gnu/perl',
  'usr/share/perl',
  'usr/share/perl5',
  'usr/share/initramfs-tools',
  'usr/share/python3',
  'usr/bin/python3',
  'usr/bin/python3.11',
  'usr/sbin/xfs_scrub',
  'var/cache',
  'var/lib/apt',
  'var/lib/dpkg',
  'var/lib/initramfs-tools',
  'var/log',
];
/** Libraries in usr/lib/<triplet> that only removed programs use. */
export const REMOVED_LIBRARY_PREFIXES = ['libicu', 'libpython3', 'libsqlite3'];

/** Modules that the initramfs loads before the root is mounted, and for the network. */
export const INITRAMFS_MODULES = ['virtio_pci', 'virtio_blk', 'virtio_net', 'squashfs'];

/** Modules kept in the root, with their dependencies: by name, or all below a directory. */
export const ROOT_MODULES = [
  'btrfs',
  'exfat',
  'fuse',
  'isofs',
  'loop',
  'nbd',
  'overlay',
  'udf',
  'vfat',
  'xfs',
  'kernel/arch/x86/crypto/',
  'kernel/crypto/',
  'kernel/drivers/md/',
  'kernel/fs/nls/',
];

/** Empty directories: mount points, and places that programs write to. */
export const MADE_DIRECTORIES = [
  'boot',
  'mnt',
  'proc',
  'run',
  'sys',
  'tmp',
  'dev',
  'var/cache',
  'var/lib/dpkg',
  'var/log',
];

/** The appliance has no udev: the tools create their device nodes themselves. */
export const LVM_CONFIGURATION = `activation {
\tudev_sync = 0
\tudev_rules = 0
\tmonitoring = 0
}
devices {
\tobtain_device_list_from_udev = 0
\texternal_device_info_source = "none"
\tuse_devicesfile = 0
}
backup {
\tbackup = 0
\tarchive = 0
}
global {
\tuse_lvmpolld = 0
}
`;

/**
 * Kernel command line. Disabling the crypto self-tests and shortening the waits for grace periods
 * saves most boot time. `panic=-1` with QEMU's -no-reboot makes a panic an exit.
 */
export const KERNEL_ARGUMENTS =
  'console=ttyS0 quiet loglevel=4 panic=-1 cryptomgr.notests rcupdate.rcu_expedited=1 tsc=reliable no_timer_check nokaslr mitigations=off raid=noautodetect random.trust_cpu=on';

/**
 * Arguments for an emulated machine, whose processors have no time stamp counter: the kernel spends
 * a quarter of a second measuring the loop speed and timer of each processor. `lpj` sets the loops
 * in a jiffy (a high value makes rare delays longer), and the HPET wakes all processors.
 */
export const EMULATED_KERNEL_ARGUMENTS = process.arch === 'x64' ? 'lpj=4000000 noapictimer' : '';

export const MEMORY_MIB = 512;
