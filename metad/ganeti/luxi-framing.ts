/** Ganeti's framing on unix sockets: a JSON text and a byte 0x03, in both directions. */
const END_OF_MESSAGE = 3;

/** Splits a byte stream into messages. */
export class LuxiDecoder {
  readonly #maxBytes: number;
  /** The beginning of the unfinished message, in one buffer even for many small pieces. */
  #held = Buffer.alloc(0);
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether a message is incomplete. */
  get isInMessage(): boolean {
    return this.#length > 0;
  }

  /**
   * @returns the messages that this chunk completes
   * @throws RangeError when a message is longer than the limit
   */
  push(chunk: Buffer): string[] {
    const messages: string[] = [];
    let rest = chunk;
    for (let end = rest.indexOf(END_OF_MESSAGE); end !== -1; end = rest.indexOf(END_OF_MESSAGE)) {
      this.#append(rest.subarray(0, end));
      messages.push(this.#held.toString('utf8', 0, this.#length));
      this.#held = Buffer.alloc(0);
      this.#length = 0;
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0) this.#append(rest);
    return messages;
  }

  #append(bytes: Buffer): void {
    const length = this.#length + bytes.length;
    if (length > this.#maxBytes)
      throw new RangeError(`message larger than ${this.#maxBytes} bytes`);
    if (length > this.#held.length) {
      const larger = Buffer.alloc(Math.min(2 * length, this.#maxBytes));
      this.#held.copy(larger, 0, 0, this.#length);
      this.#held = larger;
    }
    bytes.copy(this.#held, this.#length);
    this.#length = length;
  }
}

/** JSON escapes every control character, so the end mark cannot occur in it. */
export function encodeLuxi(value: unknown): Buffer {
  return Buffer.concat([Buffer.from(JSON.stringify(value)), Buffer.from([END_OF_MESSAGE])]);
}
