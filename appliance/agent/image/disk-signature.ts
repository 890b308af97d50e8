const SECTOR_BYTES = 512;
/** Sector size of 4Kn disks, the unit of their partition tables. */
const LARGE_SECTOR_BYTES = 4096;
const GPT_SIGNATURE = 'EFI PART';
const GPT_HEADER_BYTES = 92;
const GPT_PROTECTION = 0xee;
/**
 * Old tables count whole cylinders of 255 heads and 63 sectors, and the last may exceed the disk.
 */
const CYLINDER_BYTES = 255 * 63 * SECTOR_BYTES;

/**
 * Signatures at the beginning of a disk besides a boot sector, by offset: partition tables, file
 * systems, and the layers below them.
 */
const SIGNATURES: readonly (readonly [offset: number, bytes: string])[] = [
  [SECTOR_BYTES, GPT_SIGNATURE],
  [LARGE_SECTOR_BYTES, GPT_SIGNATURE],
  // Partition tables: Apple, BSD, Sun, SGI.
  [SECTOR_BYTES, 'PM\0\0'],
  [SECTOR_BYTES, '\x57\x45\x56\x82'],
  [64, '\x57\x45\x56\x82'],
  [508, '\xda\xbe'],
  [0, '\x0b\xe5\xa9\x41'],
  // File systems: ext, xfs, btrfs, f2fs, squashfs, erofs, jfs, reiserfs, nilfs, hfs, hfs+, iso9660,
  // udf, ufs, ntfs, bcachefs, ocfs2, gfs2.
  [1080, '\x53\xef'],
  [0, 'XFSB'],
  [65_600, '_BHRfS_M'],
  [1024, '\x10\x20\xf5\xf2'],
  [0, 'hsqs'],
  [1024, '\xe2\xe1\xf5\xe0'],
  [32_768, 'JFS1'],
  [65_588, 'ReIsEr'],
  [1030, '\x34\x34'],
  [1024, 'BD'],
  [1024, 'H+'],
  [1024, 'HX'],
  [32_769, 'CD001'],
  [32_769, 'BEA01'],
  [9564, '\x54\x19\x01\0'],
  [66_908, '\x19\x01\x54\x19'],
  [3, 'NTFS'],
  [4120, '\xc6\x85\x73\xf6'],
  [8192, 'OCFSV2'],
  [65_536, '\x01\x16\x19\x70'],
  // LVM in one of its first four sectors, LUKS, Linux RAID 1.1 and 1.2, bcache, swap, ZFS' first
  // boot block.
  [0, 'LABELONE'],
  [512, 'LABELONE'],
  [1024, 'LABELONE'],
  [1536, 'LABELONE'],
  [0, 'LUKS\xba\xbe'],
  [0, '\xfc\x4e\x2b\xa9'],
  [4096, '\xfc\x4e\x2b\xa9'],
  [4086, 'SWAPSPACE2'],
];

/**
 * Whether these bytes begin a disk: with a boot sector, a partition table, a file system, or a
 * layer below one.
 */
export function looksLikeDisk(head: Buffer): boolean {
  if (head.length >= SECTOR_BYTES && head.readUInt16BE(510) === 0x55aa) return true;
  return SIGNATURES.some(([offset, bytes]) =>
    head.subarray(offset, offset + bytes.length).equals(Buffer.from(bytes, 'latin1')),
  );
}

/**
 * Describes a fault of the partition table at the beginning of a disk.
 * @param sizeBytes of the whole disk
 * @returns null without a fault or without a table
 */
export function findTableFault(head: Buffer, sizeBytes: number): string | null {
  if (hasText(head, SECTOR_BYTES)) {
    if (head.length < SECTOR_BYTES + GPT_HEADER_BYTES)
      return 'it is truncated within the header of its partition table';
    const endBytes = gptEnd(head);
    return endBytes > sizeBytes ? cut(endBytes, sizeBytes) : null;
  }
  if (hasText(head, LARGE_SECTOR_BYTES))
    return "its partition table is for disks with 4096-byte sectors, but the instance's disks have 512-byte sectors";
  const endBytes = mbrEnd(head);
  return endBytes > sizeBytes + CYLINDER_BYTES ? cut(endBytes, sizeBytes) : null;
}

function hasText(head: Buffer, offset: number): boolean {
  return head.subarray(offset, offset + 8).toString('latin1') === GPT_SIGNATURE;
}

function cut(endBytes: number, sizeBytes: number): string {
  return `it is truncated: its partitions end at byte ${endBytes}, but the image has ${sizeBytes} bytes`;
}

/**
 * Returns the end of the last partition or of the table. The header has the place, number and
 * length of entries (UEFI 2.10, 5.3).
 */
function gptEnd(head: Buffer): number {
  const start = Number(head.readBigUInt64LE(SECTOR_BYTES + 72)) * SECTOR_BYTES;
  const count = head.readUInt32LE(SECTOR_BYTES + 80);
  const length = head.readUInt32LE(SECTOR_BYTES + 84);
  let end = start + count * length;
  for (let index = 0; index < count && length >= 128; index += 1) {
    const entry = head.subarray(start + index * length, start + index * length + 128);
    if (entry.length < 128) break;
    const isUsed = entry.subarray(0, 16).some((byte) => byte !== 0);
    if (isUsed) end = Math.max(end, (Number(entry.readBigUInt64LE(40)) + 1) * SECTOR_BYTES);
  }
  return end;
}

/**
 * Returns the end of the last of the four partitions, except a GPT's protective one; 0 for a file
 * system's boot sector.
 */
function mbrEnd(head: Buffer): number {
  if (head.length < SECTOR_BYTES || head.readUInt16BE(510) !== 0x55aa) return 0;
  let end = 0;
  for (let offset = 446; offset < 510; offset += 16) {
    const status = head[offset];
    const type = head[offset + 4];
    // Any other value is code or text.
    if (status !== 0x00 && status !== 0x80) return 0;
    if (type === 0 || type === GPT_PROTECTION) continue;
    const sectors = head.readUInt32LE(offset + 8) + head.readUInt32LE(offset + 12);
    end = Math.max(end, sectors * SECTOR_BYTES);
  }
  return end;
}
