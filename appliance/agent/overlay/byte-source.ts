import { AppError } from '#shared/errors/app-error.ts';

/** Takes exact amounts of bytes from a stream of chunks of any size. */
export class ByteSource {
  readonly #iterator: AsyncIterator<Buffer>;
  readonly #whenCut: string;
  #chunk: Buffer = Buffer.alloc(0);

  /** @param whenCut what to say when the stream ends too soon */
  constructor(input: AsyncIterable<Buffer>, whenCut: string) {
    this.#iterator = input[Symbol.asyncIterator]();
    this.#whenCut = whenCut;
  }

  /** At least one byte and at most `limit`. @throws AppError PACKAGE_INVALID at the end of the stream */
  async readSome(limit: number): Promise<Buffer> {
    if (this.#chunk.length === 0 && !(await this.#next())) throw this.#cut();
    const taken = this.#chunk.subarray(0, limit);
    this.#chunk = this.#chunk.subarray(taken.length);
    return taken;
  }

  async read(length: number): Promise<Buffer> {
    const bytes = await this.readOrEnd(length);
    if (bytes === null && length > 0) throw this.#cut();
    return bytes ?? Buffer.alloc(0);
  }

  /** Null when the stream has ended exactly here. @throws AppError PACKAGE_INVALID when it ends before `length` bytes */
  async readOrEnd(length: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#chunk.length === 0 && !(await this.#next())) {
        if (missing === length) return null;
        throw this.#cut();
      }
      const part = await this.readSome(missing);
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0;) left -= (await this.readSome(left)).length;
  }

  /** Reads to the end, so that the sender and a checksum behind the data are heard out. */
  async drain(): Promise<void> {
    this.#chunk = Buffer.alloc(0);
    while (await this.#next()) this.#chunk = Buffer.alloc(0);
  }

  async #next(): Promise<boolean> {
    for (;;) {
      const result = await this.#iterator.next();
      if (result.done === true) return false;
      this.#chunk = result.value;
      if (this.#chunk.length > 0) return true;
    }
  }

  #cut(): AppError {
    return new AppError('PACKAGE_INVALID', `not a usable tar.gz archive: ${this.#whenCut}`);
  }
}
