import { Duplex } from 'node:stream';
import { MAX_BATCH_BYTES, POSITION_BYTES, RECORD_HEAD_BYTES } from '#shared/contract/move.ts';
import { AppError, toError } from '#shared/errors/app-error.ts';

export interface IncomingRecordsOptions {
  /** Position in the file at which the sender must begin. */
  readonly position: number;
  readonly sizeBytes: number;
  /** Writes a message, after which all data before the position is there. */
  readonly write: (message: Buffer, position: number) => Promise<void>;
}

const RECORD_BYTES = RECORD_HEAD_BYTES + MAX_BATCH_BYTES;

const NOTHING = Buffer.alloc(0);

/**
 * Receives the records of a file, and answers with the positions that are written.
 *
 * INVARIANT: one record is written while the next one is received. No others are held.
 */
export class IncomingRecords extends Duplex {
  readonly #options: IncomingRecordsOptions;
  #receiving = Buffer.allocUnsafeSlow(RECORD_BYTES);
  #spare = Buffer.allocUnsafeSlow(RECORD_BYTES);
  #length = 0;
  /** Position of the last record. */
  #position: number;
  #writing = Promise.resolve();
  /** A position that the sender has no answer for. */
  #unanswered: number | undefined;
  #isAsked = false;

  constructor(options: IncomingRecordsOptions) {
    super();
    this.#options = options;
    this.#position = options.position;
    this.#unanswered = options.position;
  }

  /** Resolves when nothing is being written. A destroyed stream begins no other write. */
  async whenIdle(): Promise<void> {
    await this.#writing.catch(() => undefined);
  }

  override _read(): void {
    this.#isAsked = true;
    this.#answer();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    try {
      const rest = this.#fill(chunk);
      if (rest === undefined) done();
      else void this.#takeRecords(rest).then(() => done(), done);
    } catch (error) {
      done(toError(error));
    }
  }

  override _final(done: (error?: Error) => void): void {
    this.#writing.then(() => {
      this.#isAsked = true;
      this.#answer();
      this.push(null);
      done();
    }, done);
  }

  /** The memory is freed here, since an arrival keeps the streams of all its files. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#receiving = this.#spare = NOTHING;
    done(error);
  }

  async #takeRecords(chunk: Buffer): Promise<void> {
    for (let rest: Buffer | undefined = chunk; rest !== undefined; rest = this.#fill(rest)) {
      await this.#writing;
      // Closed meanwhile: `whenIdle` resolves now.
      if (this.destroyed) return;
      this.#takeRecord();
    }
  }

  /** Copies bytes of a chunk until a record is whole. @returns the rest of the chunk then */
  #fill(chunk: Buffer): Buffer | undefined {
    for (let at = 0; ;) {
      const missing = this.#missingBytes();
      if (missing === 0) return chunk.subarray(at);
      if (at === chunk.length) return undefined;
      const end = Math.min(chunk.length, at + missing);
      this.#length += chunk.copy(this.#receiving, this.#length, at, end);
      at = end;
    }
  }

  #missingBytes(): number {
    if (this.#length < RECORD_HEAD_BYTES) return RECORD_HEAD_BYTES - this.#length;
    const messageBytes = this.#receiving.readUInt32BE();
    if (messageBytes > MAX_BATCH_BYTES) throw malformed();
    return RECORD_HEAD_BYTES + messageBytes - this.#length;
  }

  #takeRecord(): void {
    const record = this.#receiving.subarray(0, this.#length);
    const position = Number(record.readBigUInt64BE(4));
    const { sizeBytes, write } = this.#options;
    // Records without progress would keep the session for ever.
    if (position <= this.#position || position > sizeBytes) throw malformed();
    this.#position = position;
    [this.#receiving, this.#spare] = [this.#spare, this.#receiving];
    this.#length = 0;
    this.#writing = write(record.subarray(RECORD_HEAD_BYTES), position).then(() => {
      this.#unanswered = position;
      this.#answer();
    });
    // Awaited with the next record, or the end.
    this.#writing.catch(() => undefined);
  }

  /** Answers with the newest position only: the sender may read slowly. */
  #answer(): void {
    if (this.destroyed || !this.#isAsked || this.#unanswered === undefined) return;
    const answer = Buffer.alloc(POSITION_BYTES);
    answer.writeBigUInt64BE(BigInt(this.#unanswered));
    this.#unanswered = undefined;
    this.#isAsked = this.push(answer);
  }
}

function malformed(): AppError {
  return new AppError('VALIDATION', 'the stream does not fit this file');
}
