import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';

const GRUB_DIRECTORY = '/usr/lib/grub/i386-pc';
const SECTOR_BYTES = 512;
/**
 * Modules of GRUB's core image: enough to read a kernel from ext4 on a GPT disk, through the BIOS.
 */
const GRUB_MODULES = ['biosdisk', 'part_gpt', 'ext2', 'linux'];

/** Offsets in GRUB's boot.img and diskboot.img (grub: include/grub/i386/pc/boot.h). */
const BOOT_KERNEL_SECTOR = 0x5c;
const BOOT_DRIVE_CHECK = 0x66;
const BOOT_CODE_END = 440;
const DISKBOOT_BLOCKLIST = 0x1f4;
/** Segment of the rest of the core image: the first sector is at 0x800. */
const KERNEL_SEGMENT = 0x820;

/** Makes GRUB's core image with built-in commands, so that the disk needs no files of GRUB. */
export async function makeCoreImage(workDir: string, commands: string): Promise<Buffer> {
  const config = join(workDir, 'grub-early.cfg');
  const output = join(workDir, 'core.img');
  await writeFile(config, commands);
  await run('grub-mkimage', [
    ...['-O', 'i386-pc', '-d', GRUB_DIRECTORY, '-p', '/boot/grub'],
    ...['-c', config, '-o', output],
    ...GRUB_MODULES,
  ]);
  return await readFile(output);
}

export interface BootSectors {
  /** Replaces the first 440 bytes of the disk, before the disk's signature and partition table. */
  readonly bootCode: Buffer;
  readonly core: Buffer;
}

/**
 * Does the work of grub-bios-setup without a disk: boot.img gets the place of the core image, and
 * the core image's first sector the place of the rest.
 * @param coreSector first sector of the BIOS boot partition
 */
export async function planBootSectors(core: Buffer, coreSector: number): Promise<BootSectors> {
  const boot = await readFile(join(GRUB_DIRECTORY, 'boot.img'));
  boot.writeBigUInt64LE(BigInt(coreSector), BOOT_KERNEL_SECTOR);
  // Two NOPs instead of the jump that some BIOSes need for floppies.
  boot.writeUInt16LE(0x9090, BOOT_DRIVE_CHECK);
  const patched = Buffer.from(core);
  patched.writeBigUInt64LE(BigInt(coreSector + 1), DISKBOOT_BLOCKLIST);
  patched.writeUInt16LE(Math.ceil(core.length / SECTOR_BYTES) - 1, DISKBOOT_BLOCKLIST + 8);
  patched.writeUInt16LE(KERNEL_SEGMENT, DISKBOOT_BLOCKLIST + 10);
  return { bootCode: boot.subarray(0, BOOT_CODE_END), core: patched };
}
