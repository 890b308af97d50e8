/** Replaces each byte of a credential, so that lengths in the answer stay true. */
const STAR = 0x2a;
/** The search for a long needle begins with tables of its length, for each chunk. */
const SEARCHED_BYTES = 32;

/**
 * Masks byte strings in a stream. Bytes at the end of a chunk wait for the next one only if they
 * may begin such a string, so that events of a server pass at once.
 */
export class Scrubber {
  readonly #needles: readonly Buffer[];
  readonly #isFirst = new Uint8Array(256);
  readonly #longest: number;
  /** Bytes that may begin a needle. */
  #held: Buffer = Buffer.alloc(0);
  /** Leading held bytes that belong to a needle which has been found. */
  #heldMasked = 0;

  constructor(texts: Iterable<string>) {
    this.#needles = [...new Set(texts)].map((text) => Buffer.from(text, 'latin1'));
    for (const [first = 0] of this.#needles) this.#isFirst[first] = 1;
    this.#longest = Math.max(1, ...this.#needles.map(({ length }) => length));
  }

  /** Returns the bytes that are complete, possibly none. */
  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    return this.#release(bytes, bytes.length - this.#unfinished(bytes));
  }

  /** Returns the rest at the end of the stream. Another stream may follow. */
  end(): Buffer {
    return this.#release(this.#held, this.#held.length);
  }

  #release(bytes: Buffer, end: number): Buffer {
    const ranges = this.#find(bytes);
    this.#held = Buffer.from(bytes.subarray(end));
    // A needle within the held bytes is found again. A needle that begins before them is not.
    const begun = ranges.filter(([start]) => start < end).map(([, stop]) => stop - end);
    this.#heldMasked = Math.max(0, this.#heldMasked - end, ...begun);
    return mask(bytes.subarray(0, end), ranges);
  }

  /** Returns the places of needles. */
  #find(bytes: Buffer): [number, number][] {
    const found: [number, number][] = this.#heldMasked > 0 ? [[0, this.#heldMasked]] : [];
    for (const needle of this.#needles) {
      const start = needle.subarray(0, SEARCHED_BYTES);
      let at = bytes.indexOf(start);
      while (at !== -1) {
        const end = at + needle.length;
        if (bytes.subarray(at, end).equals(needle)) found.push([at, end]);
        at = bytes.indexOf(start, at + 1);
      }
    }
    return found;
  }

  /** Returns the length of the longest end of the bytes that begins a needle. */
  #unfinished(bytes: Buffer): number {
    for (let at = Math.max(0, bytes.length - this.#longest + 1); at < bytes.length; at += 1) {
      if (this.#isFirst[bytes[at] ?? 0] === 0) continue;
      const rest = bytes.subarray(at);
      const isBegun = this.#needles.some(
        (needle) => needle.length > rest.length && needle.subarray(0, rest.length).equals(rest),
      );
      if (isBegun) return rest.length;
    }
    return 0;
  }
}

function mask(bytes: Buffer, ranges: readonly (readonly [number, number])[]): Buffer {
  if (ranges.length === 0) return bytes;
  const copy = Buffer.from(bytes);
  for (const [start, stop] of ranges)
    if (start < copy.length) copy.fill(STAR, start, Math.min(stop, copy.length));
  return copy;
}
