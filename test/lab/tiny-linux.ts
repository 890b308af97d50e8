import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeCpio, type CpioEntry } from '../../appliance/image/cpio.ts';
import type { Lab } from '../../scripts/demo/lab.ts';

/** Start of such a guest's `init`: the file systems, and the modules of QEMU's devices. */
export const TINY_INIT = `#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
$b modprobe -a virtio_pci virtio_blk virtio_net
`;

/** A guest that boots in a second or two and runs its `init`. */
export interface TinyLinux {
  readonly kernel: string;
  readonly initrd: string;
}

/**
 * Makes an initramfs from kernel, busybox and modules of the lab's built appliance, with another
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
