import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Readable, Transform, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { StageReporter } from '../report/stage.ts';

const CHUNK_BYTES = MIB;

type Progress = Pick<StageReporter, 'progress'>;

/** Reads a dump from its disk, without the disk's padding. */
export function readDump(path: string, sizeBytes: number, reporter: Progress): Readable {
  let readBytes = 0;
  const stream = createReadStream(path, {
    highWaterMark: CHUNK_BYTES,
    ...(sizeBytes > 0 && { end: sizeBytes - 1 }),
  });
  stream.on('data', (chunk) => {
    readBytes += chunk.length;
    reporter.progress(readBytes, sizeBytes);
  });
  // Not flowing before the script reads it.
  return stream.pause();
}

export interface DumpTarget {
  readonly stream: Writable;
  /**
   * Resolves with the number of bytes when they are synced.
   * @throws AppError SCRIPT_FAILED when they exceed the limit
   */
  finish(): Promise<number>;
}

/** Writes a dump to its disk. More than `maxBytes` end the script. */
export function writeDump(path: string, maxBytes: number, reporter: Progress): DumpTarget {
  let writtenBytes = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _, done) {
      writtenBytes += chunk.length;
      reporter.progress(writtenBytes, null);
      if (writtenBytes <= maxBytes) done(null, chunk);
      else done(new AppError('SCRIPT_FAILED', `the dump exceeds ${maxBytes} bytes`));
    },
  });
  const disk = createWriteStream(path, { flags: 'r+', highWaterMark: CHUNK_BYTES });
  counter.pipe(disk);
  counter.on('error', (error) => disk.destroy(error));
  const written = finished(disk);
  // Awaited in `finish`.
  written.catch(() => undefined);
  return {
    stream: counter,
    finish: async () => {
      counter.end();
      await written;
      await using handle = await open(path, 'r+');
      await handle.sync();
      return writtenBytes;
    },
  };
}
