import type { ContainerFormat } from '#shared/contract/image-formats.ts';
import { looksLikeDisk } from './disk-signature.ts';

/**
 * Formats of an image file, detected by its first bytes. `qemu-img` reads the container formats, a
 * decompressor the compressed ones.
 */
export type Compression = 'gz' | 'xz' | 'zst' | 'bz2';

export type ImageFormat =
  | { readonly kind: 'raw' }
  | {
      readonly kind: 'container';
      readonly format: ContainerFormat;
      readonly external: ExternalFile | null;
    }
  | { readonly kind: 'compressed'; readonly compression: Compression }
  | {
      readonly kind: 'unsupported';
      readonly what: string;
      /** Makes a usable image; qemu-img by default. */
      readonly remedy?: Remedy;
    };

export type Remedy = 'unpack' | 'decompress' | 'none';

/** Another file that the image needs, which the appliance does not have. */
export interface ExternalFile {
  readonly role: 'backing file' | 'data file' | 'extent file' | 'parent';
  readonly name: string;
}

/** Bytes that `recognizeImage` needs, or the whole file when it is smaller. */
export const HEADER_BYTES = 128 * 1024;

const SPARSE_VMDK = 'KDMV';
/** Bytes that QEMU probes for a format, in any release so far. */
const QEMU_PROBE_BYTES = 2048;
const QCOW2_EXTERNAL_DATA_BIT = 2;
/** QCOW2's encryption methods, by their number in the header. */
const QCOW2_CIPHERS = ['none', 'AES', 'LUKS'];
const QCOW2_DATA_FILE_EXTENSION = 0x44415441;
const VDI_SIGNATURE = 0xbeda107f;
const VDI_DIFFERENCING = 4;
const MAX_NAME_BYTES = 1024;

/** Files that are mistaken for images, by their first bytes. */
const NO_IMAGES: readonly (readonly [
  bytes: string,
  what: string,
  remedy?: Remedy,
  offset?: number,
])[] = [
  ['QED\0', 'a QED image'],
  ['WithoutFreeSpace', 'a Parallels image'],
  ['WithouFreSpacExt', 'a Parallels image'],
  ['conectix', 'a VHD (vpc)'],
  ['cxsparse', 'a VHD (vpc)'],
  ['COWD', 'a COWD image (VMDK of old ESX)'],
  ['OOOM\0', 'a User Mode Linux image'],
  ['Bochs Virtual HD Image', 'a Bochs image'],
  ['#!/bin/sh\n#V2.0 Format\n', 'a cloop image'],
  ['PK\x03\x04', 'a zip archive', 'unpack'],
  ['7z\xbc\xaf\x27\x1c', 'a 7-Zip archive', 'unpack'],
  ['Rar!\x1a\x07', 'a RAR archive', 'unpack'],
  ['ustar', 'a tar archive (for example an OVA)', 'unpack', 257],
  ['\x04\x22\x4d\x18', 'a file compressed by lz4', 'decompress'],
  ['\x02\x21\x4c\x18', 'a file compressed by lz4', 'decompress'],
  ['LZIP', 'a file compressed by lzip', 'decompress'],
  ['\x89LZO\0', 'a file compressed by lzop', 'decompress'],
  ['\x5d\0\0', 'a file compressed by lzma', 'decompress'],
  ['%PDF', 'a PDF document', 'none'],
];
/** Ignored for a disk, since a boot sector may begin with the same byte. */
const MARKUP = 'a markup document, such as a web page';

/**
 * Detects the format of an image file. Unknown content may be a raw disk, which `looksLikeDisk`
 * decides.
 */
export function recognizeImage(head: Buffer): ImageFormat {
  const format = recognizeStart(head);
  if (head.length < 512 || head.readUInt32LE(64) !== VDI_SIGNATURE) return format;
  // A VDI begins with a text in angle brackets, or with unknown bytes. With another format's
  // signature, two readers would see two images.
  if (format.kind !== 'raw' && !head.subarray(0, 1).equals(Buffer.from('<')))
    return { kind: 'unsupported', what: 'both a vdi image and another format' };
  const isDifference = head.readUInt32LE(76) === VDI_DIFFERENCING;
  return container('vdi', isDifference ? { role: 'parent', name: 'a differencing VDI' } : null);
}

function recognizeStart(head: Buffer): ImageFormat {
  const startsWith = (bytes: string): boolean =>
    head.subarray(0, bytes.length).equals(Buffer.from(bytes, 'latin1'));
  if (startsWith('QFI\xfb')) return recognizeQcow(head);
  if (startsWith(SPARSE_VMDK)) return recognizeSparseVmdk(head);
  if (isVmdkDescriptor(head))
    return container('vmdk', { role: 'extent file', name: extentName(head.toString('latin1')) });
  if (startsWith('vhdxfile')) return container('vhdx', null);
  if (startsWith('\x1f\x8b\x08')) return compressed('gz');
  if (startsWith('\xfd7zXZ\0')) return compressed('xz');
  if (isZstandard(head)) return compressed('zst');
  if (isBzip2(head)) return compressed('bz2');
  for (const [bytes, what, remedy, offset = 0] of NO_IMAGES) {
    if (head.subarray(offset, offset + bytes.length).equals(Buffer.from(bytes, 'latin1')))
      return { kind: 'unsupported', what, ...(remedy && { remedy }) };
  }
  return startsWith('<') && !looksLikeDisk(head)
    ? { kind: 'unsupported', what: MARKUP, remedy: 'none' }
    : { kind: 'raw' };
}

export function describeFormat(format: ImageFormat): string {
  switch (format.kind) {
    case 'raw':
      return 'raw';
    case 'container':
      return format.format;
    case 'compressed':
      return `raw in ${format.compression}`;
    case 'unsupported':
      return format.what;
  }
}

/**
 * Returns the minimum size of a VDI file by the blocks in its header, which `qemu-img check` does
 * not verify. Fields of the 1.1 header: offset of the data, size of a block, blocks in use.
 */
export function vdiMinimumBytes(head: Buffer): number {
  return head.readUInt32LE(344) + head.readUInt32LE(376) * head.readUInt32LE(388);
}

function container(format: ContainerFormat, external: ExternalFile | null): ImageFormat {
  return { kind: 'container', format, external };
}

function compressed(compression: Compression): ImageFormat {
  return { kind: 'compressed', compression };
}

/** Whether these bytes begin a frame or a skippable frame (RFC 8878). */
function isZstandard(head: Buffer): boolean {
  if (head.length < 4) return false;
  const magic = head.readUInt32LE(0);
  return magic === 0xfd2fb528 || (magic & 0xfffffff0) >>> 0 === 0x184d2a50;
}

/**
 * Whether these bytes are `BZh`, a block size, and the mark of a block or of an empty stream's end.
 */
function isBzip2(head: Buffer): boolean {
  const text = head.subarray(0, 10).toString('latin1');
  if (!/^BZh[1-9]/.test(text)) return false;
  const mark = head.subarray(4, 10).toString('hex');
  return mark === '314159265359' || mark === '177245385090';
}

/** Header layout: QEMU, docs/interop/qcow2.txt. */
function recognizeQcow(head: Buffer): ImageFormat {
  if (head.length < 72) return { kind: 'unsupported', what: 'a truncated qcow2 header' };
  const version = head.readUInt32BE(4);
  if (version !== 2 && version !== 3)
    return { kind: 'unsupported', what: `qcow2 version ${version}` };
  const encryption = head.readUInt32BE(32);
  if (encryption !== 0)
    return {
      kind: 'unsupported',
      what: `an encrypted qcow2 (${QCOW2_CIPHERS[encryption] ?? 'unknown'}), which cannot be decrypted`,
    };
  const backingOffset = Number(head.readBigUInt64BE(8));
  if (backingOffset !== 0) {
    const length = Math.min(head.readUInt32BE(16), MAX_NAME_BYTES);
    const name = head.subarray(backingOffset, backingOffset + length).toString();
    return container('qcow2', { role: 'backing file', name });
  }
  const hasDataFile =
    version === 3 &&
    head.length >= 80 &&
    (head.readUInt32BE(76) & (1 << QCOW2_EXTERNAL_DATA_BIT)) !== 0;
  if (!hasDataFile) return container('qcow2', null);
  return container('qcow2', {
    role: 'data file',
    name: qcow2Extension(head, QCOW2_DATA_FILE_EXTENSION),
  });
}

function qcow2Extension(head: Buffer, wanted: number): string {
  let offset = head.length >= 104 ? head.readUInt32BE(100) : head.length;
  while (offset + 8 <= head.length) {
    const type = head.readUInt32BE(offset);
    const length = head.readUInt32BE(offset + 4);
    if (type === 0) break;
    if (type === wanted)
      return head.subarray(offset + 8, offset + 8 + Math.min(length, MAX_NAME_BYTES)).toString();
    offset += 8 + Math.ceil(length / 8) * 8;
  }
  return 'unnamed';
}

/**
 * Reads the header, which counts sectors: the capacity, then place and length of the embedded
 * descriptor. A parent's content id of all ones means no parent. Without a capacity QEMU would take
 * the descriptor as a list of files and open them.
 */
function recognizeSparseVmdk(head: Buffer): ImageFormat {
  if (head.length < 44) return { kind: 'unsupported', what: 'a truncated vmdk header' };
  if (head.readBigUInt64LE(12) === 0n)
    return { kind: 'unsupported', what: 'a vmdk without a size' };
  const start = Number(head.readBigUInt64LE(28)) * 512;
  const text = head
    .subarray(start, start + Number(head.readBigUInt64LE(36)) * 512)
    .toString('latin1');
  const parent = /^parentCID=([0-9a-f]+)/im.exec(text)?.[1];
  if (parent === undefined || /^f{8}$/i.test(parent)) return container('vmdk', null);
  const name = /^parentFileNameHint="([^"]*)"/im.exec(text)?.[1] ?? 'unnamed';
  return container('vmdk', { role: 'backing file', name });
}

/**
 * Detects a descriptor by its title, or as QEMU does: comments and empty lines before the version.
 */
function isVmdkDescriptor(head: Buffer): boolean {
  const text = head.subarray(0, QEMU_PROBE_BYTES).toString('latin1');
  return (
    /^\s*# Disk DescriptorFile/.test(text.slice(0, 64)) ||
    /^(?:#[^\n]*\n|[ \r]*\n)*version=[123]\r?\n/.test(text)
  );
}

function extentName(descriptor: string): string {
  return /^(?:RW|RDONLY) \d+ \w+ "([^"]*)"/m.exec(descriptor)?.[1] ?? 'unnamed';
}
