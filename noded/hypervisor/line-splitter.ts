const NEWLINE = 0x0a;

/** Cuts a byte stream into lines of bounded length. */
export class LineSplitter {
  readonly #maxBytes: number;
  #rest: Buffer[] = [];
  #restBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * @returns the lines that are complete now, without their ends (LF or CR LF), empty ones left out
   * @throws RangeError when a line is longer than allowed; what follows is not usable then
   */
  push(chunk: Buffer): readonly string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      const line = Buffer.concat(this.#rest).toString('utf8').trimEnd();
      if (line !== '') lines.push(line);
      this.#rest = [];
      this.#restBytes = 0;
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    return lines;
  }

  #keep(part: Buffer): void {
    this.#restBytes += part.length;
    if (this.#restBytes > this.#maxBytes) {
      throw new RangeError(`a line has more than ${this.#maxBytes} bytes`);
    }
    if (part.length > 0) this.#rest.push(part);
  }
}
