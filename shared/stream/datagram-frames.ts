const LENGTH_BYTES = 2;

/** One datagram as a stream has it: its length in two bytes, most significant first, and itself. */
export function encodeDatagram(datagram: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + datagram.length);
  frame.writeUInt16BE(datagram.length);
  frame.set(datagram, LENGTH_BYTES);
  return frame;
}

/** Takes the datagrams out of a stream again. It holds less than one of them. */
export class DatagramReader {
  readonly #maxBytes: number;
  #rest: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * @returns those that are whole by now
   * @throws Error when the other side announces one that is too long: the stream is of no use then
   */
  push(chunk: Buffer): readonly Buffer[] {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const whole: Buffer[] = [];
    while (rest.length >= LENGTH_BYTES) {
      const length = rest.readUInt16BE();
      if (length > this.#maxBytes)
        throw new Error(`a frame of ${length} bytes exceeds the limit of a datagram`);
      if (rest.length < LENGTH_BYTES + length) break;
      whole.push(rest.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
      rest = rest.subarray(LENGTH_BYTES + length);
    }
    // A copy, so that a few bytes do not keep the chunk that they came in.
    this.#rest = Buffer.from(rest);
    return whole;
  }
}
