import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeCpio, type CpioEntry } from '../../appliance/image/cpio.ts';
import type { Lab } from '../../scripts/demo/lab.ts';

/** What `init` of such a guest begins with: the file systems, and the modules of what QEMU has. */
export const TINY_INIT = `#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
$b modprobe -a virtio_pci virtio_blk virtio_net
`;

/** A guest that boots in a second or two, and does what its `init` says. */
export interface TinyLinux {
  readonly kernel: string;
  readonly initrd: string;
}

/**
 * Kernel, busybox and modules are those of the lab's appliance, which has been built; what runs is
 * `init`. Later archives of an initramfs replace files of earlier ones.
 * @param name of the initramfs in the lab's root
 */
export async function makeTinyLinux(
  lab: Pick<Lab, 'paths'>,
  name: string,
  init: string,
  files: readonly CpioEntry[] = [],
): Promise<TinyLinux> {
  const { applianceDir, root } = lab.paths;
  const appliance = await readFile(join(applianceDir, 'initrd.img'));
  const padding = Buffer.alloc((4 - (appliance.length % 4)) % 4);
  const started = { path: 'init', mode: 0o755, data: Buffer.from(init) };
  const initrd = join(root, name);
  const bytes = Buffer.concat([appliance, padding, encodeCpio([], [started, ...files])]);
  await writeFile(initrd, bytes, { mode: 0o644 });
  return { kernel: join(applianceDir, 'vmlinuz'), initrd };
}
