import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';

/** Fields of x86's boot protocol, as offsets in a bzImage (Documentation/arch/x86/boot.rst). */
const SETUP_SECTORS_AT = 0x1f1;
const HEADER_MAGIC_AT = 0x202;
const PAYLOAD_OFFSET_AT = 0x248;
const PAYLOAD_LENGTH_AT = 0x24c;
const HEADER_END = 0x250;
const SECTOR_BYTES = 512;

/** LZ4's legacy frame, which the kernel's build writes (lz4_Frame_format.md). */
const LZ4_LEGACY_MAGIC = Buffer.from([0x02, 0x21, 0x4c, 0x18]);
const ELF_MAGIC = Buffer.from('\x7fELF', 'latin1');
/** The kernel's build appends the uncompressed size. */
const SIZE_BYTES = 4;

/**
 * Extracts the plain ELF kernel from a bzImage. QEMU starts it directly (PVH), without
 * decompression in the guest, which takes a tenth of the time to the agent in an emulated machine.
 * @param workDir a folder for temporary files
 * @returns null when the kernel is not compressed with LZ4, or cannot start that way; then the
 * bzImage itself boots
 * @throws Error for a damaged kernel; CommandFailed
 */
export async function extractVmlinux(bzImage: Buffer, workDir: string): Promise<Buffer | null> {
  const payload = findPayload(bzImage);
  if (payload === null) return null;
  const packed = join(workDir, 'vmlinux.lz4');
  const plain = join(workDir, 'vmlinux');
  await writeFile(packed, payload.subarray(0, -SIZE_BYTES));
  await run('lz4', ['-d', '-f', '-q', packed, plain]);
  const vmlinux = await readFile(plain);
  await Promise.all([packed, plain].map((path) => rm(path)));
  if (vmlinux.length !== payload.readUInt32LE(payload.length - SIZE_BYTES))
    throw new Error('the kernel is shorter than its header says');
  const isElf = vmlinux.subarray(0, ELF_MAGIC.length).equals(ELF_MAGIC);
  return isElf && hasPvhNote(vmlinux) ? vmlinux : null;
}

/** Returns the compressed kernel and its size; null unless it is LZ4. */
function findPayload(bzImage: Buffer): Buffer | null {
  if (bzImage.length < HEADER_END || bzImage.toString('latin1', HEADER_MAGIC_AT, 0x206) !== 'HdrS')
    return null;
  const begin =
    ((bzImage[SETUP_SECTORS_AT] ?? 0) + 1) * SECTOR_BYTES + bzImage.readUInt32LE(PAYLOAD_OFFSET_AT);
  const payload = bzImage.subarray(begin, begin + bzImage.readUInt32LE(PAYLOAD_LENGTH_AT));
  const isLz4 = payload.subarray(0, LZ4_LEGACY_MAGIC.length).equals(LZ4_LEGACY_MAGIC);
  return isLz4 && payload.length > LZ4_LEGACY_MAGIC.length + SIZE_BYTES ? payload : null;
}

/** Whether the ELF note (owner Xen, type 18) with the entry point for PVH exists. */
function hasPvhNote(elf: Buffer): boolean {
  const note = Buffer.from([4, 0, 0, 0, 8, 0, 0, 0, 18, 0, 0, 0, 0x58, 0x65, 0x6e, 0]);
  const shortNote = Buffer.from([4, 0, 0, 0, 4, 0, 0, 0, 18, 0, 0, 0, 0x58, 0x65, 0x6e, 0]);
  return elf.includes(note) || elf.includes(shortNote);
}
