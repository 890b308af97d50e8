import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { looksLikeDisk } from '../../../appliance/agent/image/disk-signature.ts';
import { HEADER_BYTES, recognizeImage } from '../../../appliance/agent/image/format.ts';
import { createSeededRandom } from '../../lab/seeded-random.ts';

/** Image files, ours against `qemu-img info`: real ones of each format, and the same with changes. */

const QEMU_TIMEOUT_MS = 60_000;
/** A table that a changed header counts is as large as the header says. */
const QEMU_ADDRESS_SPACE = String(4 * 2 ** 30);
const NUMBERS = [0, 1, 2, 3, 4, 7, 8, 9, 16, 31, 32, 104, 127, 128, 255];
const SIZE = '1M';

interface Sample {
  readonly name: string;
  readonly bytes: Buffer;
  /** What is to be said of the file as it was made. */
  readonly expected: ImageJudgement['kind'];
}

export type ImageJudgement =
  { readonly kind: 'same' | 'refused' } | { readonly kind: 'different'; readonly how: string };

/** `name` → arguments of `qemu-img create`; the files that they name stay where QEMU finds them. */
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
  const disk = Buffer.alloc(4096);
  disk.writeUInt16BE(0x55aa, 510);
  samples.push({ name: 'raw', bytes: disk, expected: 'same' });
  return samples;
}

/** One of the samples with a few changes in its headers, or cut. */
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
    // Of another format, or another's field: two signatures in one file.
    else
      bytes.set(
        other.subarray(at, at + random.pick([4, 8, 64])).subarray(0, bytes.length - at),
        at,
      );
  }
  return bytes;
}

/**
 * Ours is the result that is written to a disk, or a refusal. It must be QEMU's own reading of the
 * file, and nothing that QEMU opens besides it.
 */
export async function judgeImage(bytes: Buffer, folder: string): Promise<ImageJudgement> {
  const head = bytes.subarray(0, HEADER_BYTES);
  const ours = recognizeImage(head);
  if (ours.kind === 'unsupported') return { kind: 'refused' };
  if (ours.kind === 'container' && ours.external !== null) return { kind: 'refused' };
  // The installer refuses by the next look what is neither: see requireDisk in examine.ts.
  if (ours.kind === 'raw' && !looksLikeDisk(head)) return { kind: 'refused' };
  const name = 'image';
  await writeFile(join(folder, name), bytes);
  const probed = await imageInfo(folder, name, []);
  if (ours.kind !== 'container') {
    // A disk that begins with LUKS is a disk: it is written as it is.
    if (probed === null || probed.format === 'raw' || probed.format === 'luks')
      return { kind: 'same' };
    return { kind: 'different', how: `${ours.kind}, to QEMU it is ${probed.format}` };
  }
  if (probed !== null && probed.format !== ours.format)
    return { kind: 'different', how: `${ours.format}, to QEMU it is ${probed.format}` };
  const opened = await imageInfo(folder, name, ['-f', ours.format]);
  // As the installer does, by the same command: a file that QEMU does not open, or a backing file.
  if (opened === null || opened['backing-filename'] !== undefined) return { kind: 'refused' };
  const others = [...referencesOf(opened)].filter((file) => file !== name);
  if (others.length === 0) return { kind: 'same' };
  return { kind: 'different', how: `${ours.format} alone, and QEMU opens ${others.join(', ')}` };
}

interface ImageInfo {
  readonly format: string;
  readonly 'backing-filename'?: string;
  readonly 'format-specific'?: {
    readonly data?: {
      readonly 'data-file'?: string;
      /** There is one: of an image without the feature only the name is told, and nothing opened. */
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
