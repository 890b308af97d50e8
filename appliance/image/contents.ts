/** What the appliance is made of. A change here changes the key of the build cache. */

/**
 * Debian packages on top of the essential ones: for the agent, and for what OS scripts commonly
 * call.
 */
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

/** Never unpacked. The kernel's hook would build an initramfs that nobody boots. */
export const EXCLUDED_PATHS = [
  '/etc/kernel/postinst.d/initramfs-tools',
  '/usr/lib/udev/hwdb.d/*',
  '/usr/share/doc/*',
  '/usr/share/info/*',
  '/usr/share/locale/*',
  '/usr/share/man/*',
];

/**
 * Taken out of the root afterwards, relative to it: what only other programs need (Python and ICU
 * come with xfsprogs for `xfs_scrub`, full Perl with ca-certificates), and what differs between two
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

/** Modules that the initramfs loads before the root is there, and for the network. */
export const INITRAMFS_MODULES = ['virtio_pci', 'virtio_blk', 'virtio_net', 'squashfs'];

/** Modules kept in the root, with what they depend on: by name, or every one below a directory. */
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

/** Empty directories that are mount points, and places that must be there to be written over. */
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

/** There is no udev inside: the tools make their device nodes themselves. */
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
 * Kernel command line. The self-tests of the crypto code and the waits for grace periods are most
 * of the boot time that can be spared; `panic=-1` with QEMU's -no-reboot makes a panic an exit.
 */
export const KERNEL_ARGUMENTS =
  'console=ttyS0 quiet loglevel=4 panic=-1 cryptomgr.notests rcupdate.rcu_expedited=1 tsc=reliable no_timer_check nokaslr mitigations=off raid=noautodetect random.trust_cpu=on';

/**
 * Of an emulated machine, whose processors have no time stamp counter: the kernel waits a quarter
 * of a second to learn how fast it loops on each, and how fast the timer of a processor is. It is
 * told a number (loops in a jiffy; too many are longer waits, which hardly anything does), and has
 * the HPET wake all processors.
 */
export const EMULATED_KERNEL_ARGUMENTS = process.arch === 'x64' ? 'lpj=4000000 noapictimer' : '';

export const MEMORY_MIB = 512;
