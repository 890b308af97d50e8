import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants as zlib, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { findData } from '#shared/sys/files.ts';
import { MIB } from '#shared/units/bytes.ts';
import { writeSparse } from './write-sparse.ts';

/** Length of one read, and of one chunk of zstd's output. */
const CHUNK_BYTES = MIB;
const ZEROS = Buffer.alloc(CHUNK_BYTES);
/**
 * Most of a disk is zeros, which level 1 compresses five times as fast as zstd's default level 3.
 */
const LEVEL = 1;
const BEHIND = 'trailing bytes after the end of its zstd stream';
/** Bytes written between two checks of the free space. */
const ROOM_STEP_BYTES = 32 * CHUNK_BYTES;

type OnProgress = (doneBytes: number, totalBytes: number) => void;

/**
 * Writes a disk as one zstd stream with a checksum. `zstd -d` restores the raw disk. Holes are not
 * read.
 * @param disk `to`: new; `deviceBytes`: size of a block device, which reports neither size nor
 * holes
 */
export async function compressDisk(
  {
    from,
    to,
    deviceBytes = null,
  }: { readonly from: string; readonly to: string; readonly deviceBytes?: number | null },
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<void> {
  await using source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW);
  const target = await open(to, 'wx', 0o600);
  const compress = createZstdCompress({
    chunkSize: CHUNK_BYTES,
    params: { [zlib.ZSTD_c_compressionLevel]: LEVEL, [zlib.ZSTD_c_checksumFlag]: 1 },
  });
  const bytes = Readable.from(readWithHoles(source, deviceBytes, onProgress), {
    objectMode: false,
  });
  await pipeline(bytes, compress, target.createWriteStream(), { signal });
}

async function* readWithHoles(
  file: FileHandle,
  deviceBytes: number | null,
  onProgress: OnProgress,
): AsyncGenerator<Buffer> {
  const size = deviceBytes ?? (await file.stat()).size;
  const find = (at: number): { readonly start: number; readonly end: number } =>
    deviceBytes === null
      ? (findData(file.fd, at) ?? { start: size, end: size })
      : { start: at, end: size };
  for (let at = 0; at < size;) {
    const { start, end } = find(at);
    for (; at < start; onProgress(at, size)) {
      const hole = ZEROS.subarray(0, Math.min(CHUNK_BYTES, start - at));
      yield hole;
      at += hole.length;
    }
    for (; at < Math.min(end, size); onProgress(at, size)) {
      const wanted = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - at));
      const { bytesRead } = await file.read(wanted, 0, wanted.length, at);
      if (bytesRead === 0) throw new Error('the disk shrank while it was read');
      yield wanted.subarray(0, bytesRead);
      at += bytesRead;
    }
  }
}

/**
 * Writes a disk from the output of `compressDisk`. The content and its declared size come from an
 * untrusted source, so the result has exactly the expected size or is refused.
 * @param shown name of `from` in messages
 * @param to new
 * @param checkSpace throws when no more may be written
 * @throws AppError EXPORT_INVALID, and the errors of `checkSpace`
 */
export async function expandDisk(
  {
    from,
    shown,
    to,
    sizeBytes,
    checkSpace,
  }: Readonly<Record<'from' | 'shown' | 'to', string>> & {
    readonly sizeBytes: number;
    readonly checkSpace: () => Promise<void>;
  },
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<void> {
  const source = await open(from);
  const { size } = await source.stat();
  await using target = await open(to, 'wx', 0o600);
  await target.truncate(sizeBytes);
  let done = 0;
  let unlookedBytes = 0;
  const write = async (pieces: AsyncIterable<Buffer>): Promise<void> => {
    for await (const piece of pieces) {
      if (done + piece.length > sizeBytes) throw invalid(shown, `more than ${sizeBytes} bytes`);
      unlookedBytes += await writeSparse(target, piece, done);
      if (unlookedBytes >= ROOM_STEP_BYTES) {
        await checkSpace();
        unlookedBytes = 0;
      }
      done += piece.length;
      onProgress(done, sizeBytes);
    }
  };
  const expand = createZstdDecompress({ chunkSize: CHUNK_BYTES });
  try {
    await pipeline(source.createReadStream(), expand, write, { signal });
  } catch (error) {
    // The zstd stream ended before its file, which aborts the read.
    if (!signal.aborted && systemCodeOf(error) === 'ABORT_ERR') throw invalid(shown, BEHIND, error);
    if (!isOfZstd(error)) throw error;
    throw invalid(shown, `an incomplete zstd stream: ${messageOf(error)}`, error);
  }
  if (done < sizeBytes) throw invalid(shown, `${done} bytes instead of ${sizeBytes}`);
  if (expand.bytesWritten < size) throw invalid(shown, BEHIND);
}

const isOfZstd = (error: unknown): boolean =>
  /^(ZSTD_|Z_|ERR_ZSTD)/.test(systemCodeOf(error) ?? '');

function invalid(shown: string, what: string, cause?: unknown): AppError {
  return new AppError('EXPORT_INVALID', `${shown} has ${what}`, {
    details: { path: shown },
    cause,
  });
}
