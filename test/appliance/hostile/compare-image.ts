import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { looksLikeDisk } from '../../../appliance/agent/image/disk-signature.ts';
import { HEADER_BYTES, recognizeImage } from '../../../appliance/agent/image/format.ts';
import { createSeededRandom } from '../../lab/seeded-random.ts';

/**
 * Image files, judged by the agent and by `qemu-img info`: valid ones of each format, and changed
 * ones.
 */

const QEMU_TIMEOUT_MS = 60_000;
/** QEMU allocates tables by the counts in a changed header. */
const QEMU_ADDRESS_SPACE = String(4 * 2 ** 30);
const NUMBERS = [0, 1, 2, 3, 4, 7, 8, 9, 16, 31, 32, 104, 127, 128, 255];
const SIZE = '1M';

interface Sample {
  readonly name: string;
  readonly bytes: Buffer;
  /** The verdict on the unchanged file. */
  readonly expected: ImageJudgement['kind'];
}

export type ImageJudgement =
  { readonly kind: 'same' | 'refused' } | { readonly kind: 'different'; readonly how: string };

/** Arguments of `qemu-img create` by name; files that they name stay where QEMU finds them. */
const WHOLE: Readonly<Record<string, readonly string[]>> = {
  'qcow2-v2': ['-f', 'qcow2', '-o', 'compat=0.10'],
  'qcow2-v3': ['-f', 'qcow2'],
  'qcow2-extended': ['-f', 'qcow2', '-o', 'extended_l2=on,cluster_size=128k,lazy_refcounts=on'],
  vmdk: ['-f', 'vmdk'],
  'vmdk-stream': ['-f', 'vmdk', '-o', 'subformat=streamOptimized'],
  vdi: ['-f', 'vdi'],
  'vdi-static': ['-f', 'vdi', '-o', 'static=on'],
  vhdx: ['-f', 'vhdx', '-o', 'block_size=1M,log_size=1M'],
};
const REFERRING: Readonly<Record<string, readonly string[]>> = {
  'qcow2-backed': ['-f', 'qcow2', '-b', 'base.qcow2', '-F', 'qcow2'],
  'qcow2-data': ['-f', 'qcow2', '-o', 'data_file=data.raw'],
  'vmdk-backed': ['-f', 'vmdk', '-b', 'base.vmdk', '-F', 'vmdk'],
  'vmdk-flat': ['-f', 'vmdk', '-o', 'subformat=monolithicFlat'],
  'vmdk-parts': ['-f', 'vmdk', '-o', 'subformat=twoGbMaxExtentSparse'],
};
const OTHER: Readonly<Record<string, readonly string[]>> = {
  vpc: ['-f', 'vpc'],
  qed: ['-f', 'qed'],
  parallels: ['-f', 'parallels'],
};

/** @param folder empty */
export async function makeSamples(folder: string): Promise<readonly Sample[]> {
  const create = async (name: string, args: readonly string[]): Promise<Buffer> => {
    const size = args.includes('-b') ? [] : [SIZE];
    await execa('qemu-img', ['create', '-q', ...args, name, ...size], { cwd: folder });
    return await readFile(join(folder, name));
  };
  await create('base.qcow2', ['-f', 'qcow2']);
  await create('base.vmdk', ['-f', 'vmdk']);
  const samples: Sample[] = [];
  for (const [table, expected] of [
    [WHOLE, 'same'],
    [REFERRING, 'refused'],
    [OTHER, 'refused'],
  ] as const)
    for (const [name, args] of Object.entries(table))
      samples.push({ name, bytes: await create(name, args), expected });
  samples.push(
    { name: 'raw', bytes: bootable(Buffer.alloc(4096)), expected: 'same' },
    { name: 'vmdk-commented', bytes: bootable(commentedDescriptor()), expected: 'refused' },
    { name: 'cloop', bytes: bootable(cloop()), expected: 'refused' },
  );
  return samples;
}

/** Adds a boot sector's mark, so that the bytes pass for a disk. */
function bootable(bytes: Buffer): Buffer {
  bytes.writeUInt16BE(0x55aa, 510);
  return bytes;
}

/** A VMDK without its usual first comment line. */
function commentedDescriptor(): Buffer {
  const bytes = Buffer.alloc(4096);
  bytes.write(
    '#\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType="monolithicFlat"\nRW 2048 FLAT "data.raw" 0\n#',
  );
  return bytes;
}

/** One block, behind the script at the beginning of a cloop. */
function cloop(): Buffer {
  const bytes = Buffer.alloc(4096);
  bytes.write(
    '#!/bin/sh\n#V2.0 Format\nmodprobe cloop file=$0 && mount -r -t iso9660 /dev/cloop $1\n',
  );
  bytes.writeUInt32BE(512, 128);
  bytes.writeUInt32BE(1, 132);
  bytes.writeBigUInt64BE(1024n, 136);
  bytes.writeBigUInt64BE(1100n, 144);
  return bytes;
}

/** Changes headers of a sample, or truncates it. */
export function changedImage(samples: readonly Sample[], seed: number): Buffer {
  const random = createSeededRandom(seed);
  const bytes = Buffer.from(random.pick(samples).bytes);
  if (random.below(8) === 0)
    return bytes.subarray(
      0,
      random.below(Math.min(bytes.length, random.pick([600, HEADER_BYTES]))),
    );
  const other = random.pick(samples).bytes;
  for (let changes = 1 + random.below(3); changes > 0; changes--) {
    const at = random.below(Math.min(bytes.length, random.pick([16, 128, 512, 512, 2048, 4096])));
    const kind = random.below(4);
    if (kind === 0) bytes[at] = random.below(256);
    else if (kind === 1) bytes[at] = random.pick(NUMBERS);
    else if (kind === 2) bytes.fill(0, at, Math.min(bytes.length, at + random.pick([4, 8])));
    // Bytes of another format or field: two signatures in one file.
    else
      bytes.set(
        other.subarray(at, at + random.pick([4, 8, 64])).subarray(0, bytes.length - at),
        at,
      );
  }
  return bytes;
}

/**
 * Judges an image. The agent's result is written to a disk, or is a refusal. It must agree with
 * QEMU's reading of the file, and QEMU must not open another file.
 */
export async function judgeImage(bytes: Buffer, folder: string): Promise<ImageJudgement> {
  const head = bytes.subarray(0, HEADER_BYTES);
  const ours = recognizeImage(head);
  if (ours.kind === 'unsupported') return { kind: 'refused' };
  if (ours.kind === 'container' && ours.external !== null) return { kind: 'refused' };
  // The installer refuses such a file later: see requireDisk in examine.ts.
  if (ours.kind === 'raw' && !looksLikeDisk(head)) return { kind: 'refused' };
  const name = 'image';
  await writeFile(join(folder, name), bytes);
  const probed = await imageInfo(folder, name, []);
  if (ours.kind !== 'container') return judgeRaw(ours.kind, head, probed);
  if (probed !== null && probed.format !== ours.format)
    return { kind: 'different', how: `${ours.format}, to QEMU it is ${probed.format}` };
  const opened = await imageInfo(folder, name, ['-f', ours.format]);
  // Refused by the installer's next command: a file that QEMU does not open, or a backing file.
  if (opened === null || opened['backing-filename'] !== undefined) return { kind: 'refused' };
  const others = [...referencesOf(opened)].filter((file) => file !== name);
  if (others.length === 0) return { kind: 'same' };
  return { kind: 'different', how: `${ours.format} alone, and QEMU opens ${others.join(', ')}` };
}

/**
 * Judges a raw image. A disk that begins with LUKS is written as it is. Any file can be opened as
 * raw.
 */
function judgeRaw(kind: string, head: Buffer, probed: ImageInfo | null): ImageJudgement {
  if (head.toString('latin1', 0, 4) === 'LUKS' || probed?.format === 'raw') return { kind: 'same' };
  const theirs = probed?.format ?? 'of a format that it cannot open';
  return { kind: 'different', how: `${kind}, to QEMU it is ${theirs}` };
}

interface ImageInfo {
  readonly format: string;
  readonly 'backing-filename'?: string;
  readonly 'format-specific'?: {
    readonly data?: {
      readonly 'data-file'?: string;
      /** Present with the feature. Without it the name is reported, and no file is opened. */
      readonly 'data-file-raw'?: boolean;
      readonly extents?: readonly { readonly filename: string }[];
    };
  };
}

function* referencesOf(info: ImageInfo): Generator<string> {
  const data = info['format-specific']?.data;
  if (data?.['data-file-raw'] !== undefined) yield data['data-file'] ?? 'unnamed';
  for (const { filename } of data?.extents ?? []) yield filename;
}

/** Null when QEMU does not open it. */
async function imageInfo(
  folder: string,
  name: string,
  args: readonly string[],
): Promise<ImageInfo | null> {
  const limits = [`--as=${QEMU_ADDRESS_SPACE}`, '--core=0', 'qemu-img', 'info', '--output=json'];
  const { exitCode, stdout } = await execa('prlimit', [...limits, ...args, name], {
    cwd: folder,
    reject: false,
    timeout: QEMU_TIMEOUT_MS,
  });
  if (exitCode !== 0) return null;
  return JSON.parse(stdout) as ImageInfo; // qemu-img's own output
}
