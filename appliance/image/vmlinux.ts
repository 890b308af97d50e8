import { MIB } from '#shared/units/bytes.ts';

/** LZ4's legacy frame, as the kernel's build writes it (lz4_Frame_format.md). */
const LZ4_LEGACY_MAGIC = Buffer.from([0x02, 0x21, 0x4c, 0x18]);
const ELF_MAGIC = Buffer.from('\x7fELF', 'latin1');
const LEGACY_BLOCK_BYTES = 8 * MIB;
const MAX_BLOCK_BYTES = LEGACY_BLOCK_BYTES * 2;

/**
 * Takes the plain ELF kernel out of a bzImage: QEMU starts it directly (PVH), which saves the guest
 * from decompressing it.
 *
 * It is decoded twice, and taken when both are the same: this format has no checksum, and once, on a
 * machine under load, 1,816 bytes of 53 MB came out as others, for a reason that was not found. Such
 * a kernel stands still at its first instructions, and the appliance vouches for it from then on.
 * @returns null when the kernel is not compressed with LZ4, cannot start that way, or was not
 * decoded twice the same; then the bzImage itself boots
 */
export function extractVmlinux(
  bzImage: Buffer,
  decode: (input: Buffer, start: number) => Buffer | null = decodeLegacyLz4,
): Buffer | null {
  for (
    let at = bzImage.indexOf(LZ4_LEGACY_MAGIC);
    at >= 0;
    at = bzImage.indexOf(LZ4_LEGACY_MAGIC, at + 1)
  ) {
    const elf = decode(bzImage, at + LZ4_LEGACY_MAGIC.length);
    if (elf?.subarray(0, ELF_MAGIC.length).equals(ELF_MAGIC) === true && hasPvhNote(elf)) {
      const again = decode(bzImage, at + LZ4_LEGACY_MAGIC.length);
      return again?.equals(elf) === true ? elf : null;
    }
  }
  return null;
}

/** The ELF note (owner Xen, type 18) that names the entry point for PVH. */
function hasPvhNote(elf: Buffer): boolean {
  const note = Buffer.from([4, 0, 0, 0, 8, 0, 0, 0, 18, 0, 0, 0, 0x58, 0x65, 0x6e, 0]);
  const shortNote = Buffer.from([4, 0, 0, 0, 4, 0, 0, 0, 18, 0, 0, 0, 0x58, 0x65, 0x6e, 0]);
  return elf.includes(note) || elf.includes(shortNote);
}

function decodeLegacyLz4(input: Buffer, start: number): Buffer | null {
  const blocks: Buffer[] = [];
  let at = start;
  while (at + 4 <= input.length) {
    const length = input.readUInt32LE(at);
    // What follows the last block (the kernel's build appends the decompressed size) is no
    // plausible block.
    if (length === 0 || length > MAX_BLOCK_BYTES || at + 4 + length > input.length) break;
    const block = decodeBlock(input.subarray(at + 4, at + 4 + length));
    if (block === null) break;
    blocks.push(block);
    at += 4 + length;
    if (block.length < LEGACY_BLOCK_BYTES) break;
  }
  return blocks.length === 0 ? null : Buffer.concat(blocks);
}

/** One LZ4 block (lz4_Block_format.md). @returns null when it is not one */
function decodeBlock(input: Buffer): Buffer | null {
  const output = Buffer.allocUnsafe(LEGACY_BLOCK_BYTES);
  let from = 0;
  let to = 0;
  const extended = (nibble: number): number => {
    let length = nibble;
    if (nibble !== 15) return length;
    for (;;) {
      const more = input[from++] ?? 0;
      length += more;
      if (more !== 255 || from >= input.length) return length;
    }
  };
  while (from < input.length) {
    const token = input[from++] ?? 0;
    const literals = extended(token >> 4);
    if (from + literals > input.length || to + literals > output.length) return null;
    to += input.copy(output, to, from, from + literals);
    from += literals;
    if (from >= input.length) break;
    const offset = input.readUInt16LE(from);
    from += 2;
    const length = extended(token & 15) + 4;
    if (offset === 0 || offset > to || to + length > output.length) return null;
    // Byte by byte where source and destination overlap: that is how LZ4 repeats a pattern.
    if (offset >= length) output.copyWithin(to, to - offset, to - offset + length);
    else
      for (let index = 0; index < length; index += 1)
        output[to + index] = output[to - offset + index] ?? 0;
    to += length;
  }
  return output.subarray(0, to);
}
