import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { AppError, isAppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import { identifiesVersion, type Validators } from '../downloads/transfer/byte-source.ts';
import type { TransferSink } from '../downloads/transfer/transfer.ts';

const savedValidators = z.object({
  etag: z.string().nullable(),
  lastModified: z.string().nullable(),
});

export interface PartialFileOptions {
  /** `…/partial-<key>`; the validators are beside it in `.json`. */
  readonly path: string;
  /** Makes room for so many more bytes, or throws DISK_SPACE. */
  readonly makeRoom: (missingBytes: number) => Promise<void>;
  readonly maxBytes: number;
  readonly display: string;
  readonly onProgress: (doneBytes: number, totalBytes: number | null) => void;
}

/**
 * Bytes between checks for room: others use the disk too, and a server need not announce the size.
 */
const ROOM_STEP_BYTES = 8 * MIB;

/**
 * A partial download. Only `finish` gives it its final name. INVARIANT: `#hash` has seen exactly
 * the first `sizeBytes` bytes of the file.
 */
export class PartialFile implements TransferSink {
  readonly #options: PartialFileOptions;
  #file: FileHandle | undefined;
  #hash: Hash = createHash('sha256');
  #totalBytes: number | null = null;
  /** Bytes left of the room at the last check. */
  #roomBytes = 0;
  #validators: Validators | null = null;
  sizeBytes = 0;

  constructor(options: PartialFileOptions) {
    this.#options = options;
  }

  get validators(): Validators | null {
    return this.#validators;
  }

  /** Continues an earlier attempt when its version is identified. */
  async resume(signal: AbortSignal): Promise<void> {
    const validators = await this.#readValidators();
    if (!validators || !identifiesVersion(validators)) return this.discard();
    this.#validators = validators;
    try {
      // Without an encoding the chunks are Buffers.
      for await (const chunk of createReadStream(this.#options.path, {
        signal,
      }) as AsyncIterable<Buffer>) {
        this.#hash.update(chunk);
        this.sizeBytes += chunk.length;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (systemCodeOf(error) !== 'ENOENT') throw error;
      this.#validators = null;
    }
  }

  async begin(offset: number, totalBytes: number | null, validators: Validators): Promise<void> {
    this.#refuseBeyond(totalBytes ?? 0, '');
    await this.#options.makeRoom(totalBytes === null ? ROOM_STEP_BYTES : totalBytes - offset);
    this.#roomBytes = ROOM_STEP_BYTES;
    this.#file ??= await open(this.#options.path, 'a', 0o600);
    if (offset === 0 || offset !== this.sizeBytes) {
      await this.#file.truncate(0);
      this.#hash = createHash('sha256');
      this.sizeBytes = 0;
    }
    this.#totalBytes = totalBytes;
    this.#validators = validators;
    await writeFile(`${this.#options.path}.json`, JSON.stringify(validators), { mode: 0o600 });
    this.#options.onProgress(this.sizeBytes, totalBytes);
  }

  async write(chunk: Buffer): Promise<void> {
    if (!this.#file) throw new Error('write before begin');
    this.#refuseBeyond(this.sizeBytes + chunk.length, 'at least ');
    await this.#keepRoomFor(chunk.length);
    try {
      for (let done = 0; done < chunk.length;) {
        done += (await this.#file.write(chunk, done)).bytesWritten;
      }
    } catch (error) {
      throw diskFailure(this.#options.path, error, this.#totalBytes);
    }
    this.#hash.update(chunk);
    this.sizeBytes += chunk.length;
    this.#options.onProgress(this.sizeBytes, this.#totalBytes);
  }

  /** @param bytes the present or expected size. @throws AppError IMAGE_TOO_LARGE */
  #refuseBeyond(bytes: number, atLeast: '' | 'at least '): void {
    const { maxBytes, display } = this.#options;
    if (bytes <= maxBytes) return;
    throw new AppError(
      'IMAGE_TOO_LARGE',
      `the image ${display} has ${atLeast}${bytes} bytes, the limit is ${maxBytes}`,
      {
        details: { url: display, maxBytes },
        hint: 'Allow larger images: gnt-cluster modify --max-image-size SIZE',
      },
    );
  }

  /** @throws AppError DISK_FULL when others took the room meanwhile, or the size was unknown */
  async #keepRoomFor(bytes: number): Promise<void> {
    this.#roomBytes -= bytes;
    if (this.#roomBytes >= 0) return;
    const left = this.#totalBytes === null ? ROOM_STEP_BYTES : this.#totalBytes - this.sizeBytes;
    try {
      await this.#options.makeRoom(Math.max(bytes, Math.min(ROOM_STEP_BYTES, left)));
    } catch (error) {
      throw diskFailure(this.#options.path, error, this.#totalBytes);
    }
    this.#roomBytes = Math.max(0, ROOM_STEP_BYTES - bytes);
  }

  /** Moves the synced file to the name for its SHA-256. @returns the SHA-256 */
  async finish(nameOf: (sha256: string) => string): Promise<string> {
    if (!this.#file) throw new Error('finish before begin');
    try {
      await this.#file.sync();
    } catch (error) {
      throw diskFailure(this.#options.path, error, this.#totalBytes);
    }
    await this.close();
    const sha256 = this.#hash.digest('hex');
    await rename(this.#options.path, nameOf(sha256));
    await rm(`${this.#options.path}.json`, { force: true });
    return sha256;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  get isResumable(): boolean {
    return this.sizeBytes > 0 && this.#validators !== null && identifiesVersion(this.#validators);
  }

  async discard(): Promise<void> {
    await this.close();
    await rm(this.#options.path, { force: true });
    await rm(`${this.#options.path}.json`, { force: true });
  }

  async #readValidators(): Promise<Validators | undefined> {
    try {
      const text = await readFile(`${this.#options.path}.json`, 'utf8');
      return savedValidators.parse(JSON.parse(text));
    } catch {
      // A missing, cut or damaged file cannot be continued.
      return undefined;
    }
  }
}

/** Closes the file after a failure. Keeps bytes that a later attempt can continue. */
export async function abandon(partial: PartialFile, error: unknown): Promise<void> {
  await partial.close();
  const isHopeless = isAppError(error, 'DISK_FULL') || isAppError(error, 'IMAGE_TOO_LARGE');
  if (isHopeless || !partial.isResumable) await partial.discard();
}

function diskFailure(path: string, error: unknown, totalBytes: number | null): unknown {
  const isFull = ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(systemCodeOf(error) ?? '');
  if (!isFull && !isAppError(error, 'DISK_SPACE')) return error;
  return new AppError(
    'DISK_FULL',
    `the disk became full while ${path} was written: ${messageOf(error)}`,
    {
      details: { path, totalBytes },
      hint: 'Free space there, then repeat the command.',
      cause: error,
    },
  );
}
