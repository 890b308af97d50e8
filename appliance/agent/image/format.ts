/** Formats of an image file, found by its first bytes. `qemu-img` reads the container formats, a decompressor the compressed ones. */
export type ContainerFormat = 'qcow2' | 'vmdk' | 'vdi' | 'vhdx';
export type Compression = 'gz' | 'xz' | 'zst' | 'bz2';

export type ImageFormat =
  | { readonly kind: 'raw' }
  | {
      readonly kind: 'container';
      readonly format: ContainerFormat;
      readonly external: ExternalFile | null;
    }
  | { readonly kind: 'compressed'; readonly compression: Compression }
  /** Recognised, and known not to work. */
  | { readonly kind: 'unsupported'; readonly what: string };

/** Another file that the image needs: there is none inside the appliance. */
export interface ExternalFile {
  readonly role: 'backing file' | 'data file' | 'extent file' | 'parent';
  readonly name: string;
}

/** Bytes that `recognizeImage` wants to see, or the whole file when that is smaller. */
export const HEADER_BYTES = 64 * 1024;

const SPARSE_VMDK = 'KDMV';
const QCOW2_EXTERNAL_DATA_BIT = 2;
const QCOW2_DATA_FILE_EXTENSION = 0x44415441;
const VDI_SIGNATURE = 0xbeda107f;
const VDI_DIFFERENCING = 4;
const MAX_NAME_BYTES = 1024;

/** Tells what an image file is. Everything that is nothing else is a raw disk. */
export function recognizeImage(head: Buffer): ImageFormat {
  const startsWith = (bytes: string): boolean =>
    head.subarray(0, bytes.length).equals(Buffer.from(bytes, 'latin1'));
  if (startsWith('QFI\xfb')) return recognizeQcow(head);
  if (startsWith(SPARSE_VMDK)) return container('vmdk', vmdkExternal(head));
  if (startsWith('COWD')) return { kind: 'unsupported', what: 'a VMDK of the old ESX kind (COWD)' };
  if (/^\s*# Disk DescriptorFile/.test(head.subarray(0, 64).toString('latin1')))
    return container('vmdk', { role: 'extent file', name: extentName(head.toString('latin1')) });
  if (head.length >= 512 && head.readUInt32LE(64) === VDI_SIGNATURE)
    return container(
      'vdi',
      head.readUInt32LE(76) === VDI_DIFFERENCING
        ? { role: 'parent', name: 'a differencing VDI' }
        : null,
    );
  if (startsWith('vhdxfile')) return container('vhdx', null);
  if (startsWith('conectix') || startsWith('cxsparse'))
    return { kind: 'unsupported', what: 'a VHD (vpc)' };
  if (startsWith('\x1f\x8b\x08')) return compressed('gz');
  if (startsWith('\xfd7zXZ\0')) return compressed('xz');
  if (isZstandard(head)) return compressed('zst');
  if (isBzip2(head)) return compressed('bz2');
  return { kind: 'raw' };
}

/** A name for messages. */
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
 * Bytes that a VDI file must have for the blocks that its header counts: `qemu-img check` does not look.
 * Fields of the 1.1 header: offset of the data, size of a block, blocks in use.
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

/** A frame, or one of the sixteen magic numbers of a skippable frame (RFC 8878). */
function isZstandard(head: Buffer): boolean {
  if (head.length < 4) return false;
  const magic = head.readUInt32LE(0);
  return magic === 0xfd2fb528 || (magic & 0xfffffff0) >>> 0 === 0x184d2a50;
}

/** `BZh`, the block size, and the mark of a block or of the end of an empty stream. */
function isBzip2(head: Buffer): boolean {
  const text = head.subarray(0, 10).toString('latin1');
  if (!/^BZh[1-9]/.test(text)) return false;
  const mark = head.subarray(4, 10).toString('hex');
  return mark === '314159265359' || mark === '177245385090';
}

/** Header layout: QEMU, docs/interop/qcow2.txt. */
function recognizeQcow(head: Buffer): ImageFormat {
  if (head.length < 72) return { kind: 'unsupported', what: 'a cut qcow2 header' };
  const version = head.readUInt32BE(4);
  if (version !== 2 && version !== 3)
    return { kind: 'unsupported', what: `qcow2 version ${version}` };
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

/** The embedded descriptor names a parent's content id; all ones means there is none. */
function vmdkExternal(head: Buffer): ExternalFile | null {
  if (head.length < 44) return null;
  const descriptorOffset = Number(head.readBigUInt64LE(28)) * 512;
  const descriptorBytes = Number(head.readBigUInt64LE(36)) * 512;
  const text = head
    .subarray(descriptorOffset, descriptorOffset + descriptorBytes)
    .toString('latin1');
  const parent = /^parentCID=([0-9a-f]+)/im.exec(text)?.[1];
  if (parent === undefined || /^f{8}$/i.test(parent)) return null;
  const name = /^parentFileNameHint="([^"]*)"/im.exec(text)?.[1] ?? 'unnamed';
  return { role: 'backing file', name };
}

function extentName(descriptor: string): string {
  return /^(?:RW|RDONLY) \d+ \w+ "([^"]*)"/m.exec(descriptor)?.[1] ?? 'unnamed';
}
