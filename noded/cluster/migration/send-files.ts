import type { Duplex } from 'node:stream';
import PQueue from 'p-queue';
import { BLOCK_BYTES, POSITION_BYTES, RECORD_HEAD_BYTES } from '#shared/contract/move.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { setOwn } from '#shared/json/own-value.ts';
import type { SendRate } from '#shared/stream/send-rate.ts';
import { readBatches } from '../../storage/data-blocks.ts';
import { createBlocksDigest, createMessagesDigest } from '../../storage/file-digests.ts';
import type { DepartingFile } from '../../storage/moving-disks.ts';
import type { JobContext } from '../../jobs/job-handler.ts';
import type { FileTransfer, MigrationTargetClient, WrittenTo } from './migration-target-client.ts';

/** Streams side by side. */
const MAX_STREAMS = 4;

type OnRead = (bytes: number) => void;

export interface SentTo extends Omit<WrittenTo, 'name'> {
  readonly takesStreams: boolean;
  readonly rate: SendRate | null;
}

/**
 * Sends files to the target of a move.
 * @param at.takesStreams whether the target receives streams
 * @param at.rate null: no limit
 * @returns the digests of the files, by name
 */
export async function sendFiles(
  files: readonly DepartingFile[],
  { takesStreams, rate, ...at }: SentTo,
  { signal, report }: Pick<JobContext, 'signal' | 'report'>,
  target: MigrationTargetClient,
): Promise<Readonly<Record<string, string>>> {
  const totalBytes = files.reduce((sum, { takenBytes }) => sum + takenBytes, 0);
  const digests: Record<string, string> = {};
  let doneBytes = 0;
  const onRead = (bytes: number): void => {
    doneBytes += bytes;
    report.progress('sending disks', Math.min(doneBytes, totalBytes), totalBytes);
  };
  const send = takesStreams ? sendAsStream : sendAsMessages;
  const failed = new AbortController();
  const within = AbortSignal.any([signal, failed.signal]);
  const queue = new PQueue({ concurrency: takesStreams ? MAX_STREAMS : 1 });
  const sent = await Promise.allSettled(
    files.map((file) =>
      queue.add(async () => {
        within.throwIfAborted();
        try {
          setOwn(
            digests,
            file.name,
            await send(file, at, { target, signal: within, onRead, rate }),
          );
        } catch (error) {
          failed.abort(error);
          throw error;
        }
      }),
    ),
  );
  if (sent.some(({ status }) => status === 'rejected')) within.throwIfAborted();
  return digests;
}

interface Sending {
  readonly target: MigrationTargetClient;
  readonly signal: AbortSignal;
  readonly onRead: OnRead;
  readonly rate: SendRate | null;
}

async function sendAsStream(
  file: DepartingFile,
  at: Omit<WrittenTo, 'name'>,
  { target, signal, onRead, rate }: Sending,
): Promise<string> {
  const transfer = new StreamTransfer(file, onRead, rate);
  await target.sendFile({ ...at, name: file.name }, transfer, signal);
  return transfer.digest();
}

/** Sends single messages to a node of release 0.2. */
async function sendAsMessages(
  { name, file, sizeBytes }: DepartingFile,
  at: Omit<WrittenTo, 'name'>,
  { target, signal, onRead, rate }: Sending,
): Promise<string> {
  const digest = createMessagesDigest();
  // The next message is read while the target writes this one.
  let written = Promise.resolve();
  try {
    for await (const { message, readBytes } of readBatches(file, signal)) {
      digest.update(message);
      await written;
      await rate?.take(message.length, signal);
      written = target.write({ ...at, name }, message, signal);
      // It may fail before the next message is read, and is awaited then.
      written.catch(() => undefined);
      onRead(readBytes);
    }
  } finally {
    // The buffer must not be freed or reused before.
    await Promise.allSettled([written]);
  }
  await written;
  return digest.finish(sizeBytes);
}

/** A file that is sent in records (shared/contract/move.ts). */
class StreamTransfer implements FileTransfer {
  readonly #file: DepartingFile;
  readonly #onRead: OnRead;
  readonly #rate: SendRate | null;
  readonly #digest = createBlocksDigest();
  /** The digest and the progress count all data before it. */
  #readTo = 0;
  position = 0;

  constructor(file: DepartingFile, onRead: OnRead, rate: SendRate | null) {
    this.#file = file;
    this.#onRead = onRead;
    this.#rate = rate;
  }

  digest(): string {
    return this.#digest.finish(this.#file.sizeBytes);
  }

  async send(stream: Duplex, signal: AbortSignal): Promise<void> {
    const abort = (): void => void stream.destroy();
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      const first = Promise.withResolvers<number>();
      const over = readPositions(stream, (position) => {
        this.position = Math.max(this.position, position);
        first.resolve(position);
      });
      const lost = over.then(() => Promise.reject(cut()));
      lost.catch(() => undefined);
      await this.#sendFrom(await Promise.race([first.promise, lost]), { stream, lost, signal });
      await over;
      if (this.position !== this.#file.sizeBytes) throw cut();
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
      stream.destroy();
    }
  }

  async #sendFrom(from: number, { stream, lost, signal }: Opened): Promise<void> {
    const { file, sizeBytes } = this.#file;
    if (from > this.#readTo || (from % BLOCK_BYTES !== 0 && from !== sizeBytes)) throw cut();
    // The next record is read while this one is written.
    let written: Promise<unknown> = Promise.resolve();
    let sentTo = from;
    for await (const { message, record, position, readBytes } of readBatches(file, signal, from)) {
      if (position > this.#readTo) {
        this.#digest.update(message);
        this.#onRead(readBytes);
        this.#readTo = position;
      }
      await written;
      await this.#rate?.take(record.length, signal);
      written = Promise.race([write(stream, record), lost]);
      written.catch(() => undefined);
      sentTo = position;
    }
    await written;
    if (sentTo < sizeBytes) await Promise.race([write(stream, encodeEnd(sizeBytes)), lost]);
    this.#readTo = sizeBytes;
    stream.end();
  }
}

interface Opened {
  readonly stream: Duplex;
  /** Rejects when the stream ends. */
  readonly lost: Promise<never>;
  readonly signal: AbortSignal;
}

/** Resolves at the end of the stream. @throws AppError NODE_UNREACHABLE */
async function readPositions(
  stream: Duplex,
  onPosition: (position: number) => void,
): Promise<void> {
  let rest = Buffer.alloc(0);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const bytes = Buffer.concat([rest, chunk]);
      const whole = bytes.length - (bytes.length % POSITION_BYTES);
      for (let at = 0; at < whole; at += POSITION_BYTES)
        onPosition(Number(bytes.readBigUInt64BE(at)));
      rest = bytes.subarray(whole);
    }
  } catch (error) {
    throw cut(error);
  }
}

function write(stream: Duplex, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => {
      if (error) reject(cut(error));
      else resolve();
    });
  });
}

/** The rest of the file is a hole. */
function encodeEnd(position: number): Buffer {
  const record = Buffer.alloc(RECORD_HEAD_BYTES);
  record.writeBigUInt64BE(BigInt(position), 4);
  return record;
}

function cut(cause?: unknown): AppError {
  return new AppError('NODE_UNREACHABLE', 'the node closed the stream of a disk', {
    hint: 'Check that gnt-noded runs there, and repeat the command.',
    cause,
  });
}
