import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { SERVICE_IPV4 } from '#shared/contract/service-address.ts';
import { INITRAMFS_MODULES } from './contents.ts';
import { type CpioEntry, encodeCpio } from './cpio.ts';
import { type ModuleTable, withDependencies } from './modules.ts';

/**
 * The host has verified the whole image already. Threads for V8 cost more at the start than they
 * save later.
 */
const NODE_FLAGS = '--no-warnings --no-verify-snapshot-checksum --v8-pool-size=0';

/** Folder of the appliance's own hooks in the archive behind the initramfs. */
export const HOOKS_ARCHIVE_FOLDER = 'hooks';

/**
 * Path of `MODPROBE` in the initramfs. It is set when the root is mounted: earlier the kernel would
 * start it several times without any module to load.
 */
const MODPROBE_PATH = '/modprobe';

/**
 * First process of the appliance. It stays process 1, so that the machine powers off however the
 * agent ends. The network comes up in parallel, on the other processor, while Node starts, so that
 * files which it uses must not move.
 */
const INIT = `#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
read user_space_at rest </proc/uptime
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
$b modprobe -a virtio_pci virtio_blk squashfs
for disk in /sys/block/vd*; do
  serial=
  read serial <$disk/serial
  [ "$serial" != root ] || root=/dev/\${disk##*/}
done
if ! $b mount -r -t squashfs "$root" /root; then
  echo 'gnt-appliance: no disk with serial root, or no squashfs on it'
  $b poweroff -f
fi
echo ${MODPROBE_PATH} >/proc/sys/kernel/modprobe
$b sh /network &
$b mount -t tmpfs -o mode=755 run /root/run
$b mount -t tmpfs -o mode=1777 tmp /root/tmp
$b mount -t devtmpfs dev /root/dev
$b mount -t sysfs sysfs /root/sys
$b mount -t proc proc /root/proc
[ ! -d /${HOOKS_ARCHIVE_FOLDER} ] || $b mount -o bind /${HOOKS_ARCHIVE_FOLDER} /root/opt/gnt/hooks
export GNT_USER_SPACE_AT=$user_space_at PATH=/usr/sbin:/usr/bin:/sbin:/bin
$b chroot /root /opt/gnt/node ${NODE_FLAGS} --snapshot-blob /opt/gnt/agent.blob
echo "gnt-appliance: agent ended with status $?"
$b sync
$b poweroff -f
`;

/** Brings up the channel, the only network interface. */
const NETWORK = `b=/bin/busybox
$b modprobe virtio_net
$b ip link set lo up
$b ip link set eth0 up
exec $b udhcpc -i eth0 -f -q -n -t 60 -T 1 -A 1 -s /lease >/dev/null 2>&1
`;

/** Script of udhcpc: sets the address, and the route to the host even for a /32 lease. */
const LEASE = `#!/bin/busybox sh
b=/bin/busybox
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
$b ip addr replace "$ip/\${mask:-32}" dev "$interface"
$b ip route replace ${SERVICE_IPV4}/32 dev "$interface"
`;

/**
 * Started by the kernel when a file system or device needs a module. The kernel's root is still the
 * initramfs; the modules are in the mounted root.
 */
const MODPROBE = `#!/bin/busybox sh
exec /bin/busybox chroot /root /sbin/modprobe "$@"
`;

/**
 * Builds the initramfs from a root tree: busybox, the modules for the root disk and the network,
 * and four scripts.
 */
export async function buildInitramfs(
  rootPath: string,
  kernelVersion: string,
  table: ModuleTable,
): Promise<Buffer> {
  const directory = `lib/modules/${kernelVersion}`;
  const modules = withDependencies(table, INITRAMFS_MODULES);
  const read = (path: string): Promise<Buffer> => readFile(join(rootPath, path));
  const files: CpioEntry[] = [
    { path: 'bin/busybox', mode: 0o755, data: await read('bin/busybox') },
    { path: 'init', mode: 0o755, data: Buffer.from(INIT) },
    { path: 'lease', mode: 0o755, data: Buffer.from(LEASE) },
    { path: MODPROBE_PATH.slice(1), mode: 0o755, data: Buffer.from(MODPROBE) },
    { path: 'network', mode: 0o644, data: Buffer.from(NETWORK) },
    {
      path: `${directory}/modules.dep`,
      mode: 0o644,
      data: Buffer.from(dependencyFile(table, modules)),
    },
  ];
  for (const module of modules) {
    const data = await read(join('usr', directory, module));
    files.push({ path: `${directory}/${basename(module)}`, mode: 0o644, data });
  }
  return encodeCpio(['bin', 'dev', 'lib', 'lib/modules', directory, 'proc', 'root', 'sys'], files);
}

/** Writes modules.dep for busybox's modprobe, with all modules in one folder. */
function dependencyFile(table: ModuleTable, modules: readonly string[]): string {
  const line = (module: string): string =>
    `${basename(module)}: ${(table.get(module) ?? []).map((path) => basename(path)).join(' ')}`;
  return `${modules.map(line).join('\n')}\n`;
}
