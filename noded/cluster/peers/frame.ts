import nacl from 'tweetnacl';

export const FrameType = { data: 0, end: 1, credit: 2, close: 3, ping: 4 } as const;
export type FrameType = (typeof FrameType)[keyof typeof FrameType];

export interface Frame {
  readonly type: number;
  readonly body: Buffer;
}

/** The opener and the answerer of a stream, so that their nonces differ. */
export type Side = 0 | 1;

const COUNTER_BYTES = 8;
export const MAX_FRAME_BODY_BYTES = 48 * 1024;
const MAX_FRAME_BYTES = COUNTER_BYTES + nacl.secretbox.overheadLength + 1 + MAX_FRAME_BODY_BYTES;

/** Seals the frames of one direction, numbered without a gap. */
export class FrameSealer {
  readonly #key: Uint8Array;
  readonly #side: Side;
  #counter = 0;

  constructor(key: Uint8Array, side: Side) {
    this.#key = key;
    this.#side = side;
  }

  seal(type: FrameType, body: Uint8Array): Buffer {
    const counter = encodeCounter(this.#counter);
    this.#counter += 1;
    const plain = Buffer.concat([Buffer.from([type]), body]);
    return Buffer.concat([counter, nacl.secretbox(plain, nonceOf(this.#side, counter), this.#key)]);
  }
}

export class FrameOpener {
  readonly #key: Uint8Array;
  readonly #side: Side;
  #expected = 0;

  /** @param side the sealing end of the stream */
  constructor(key: Uint8Array, side: Side) {
    this.#key = key;
    this.#side = side;
  }

  /** @returns `ignored` for a foreign or repeated frame; `lost` when earlier frames are missing */
  open(bytes: Buffer): Frame | 'ignored' | 'lost' {
    if (bytes.length <= COUNTER_BYTES || bytes.length > MAX_FRAME_BYTES) return 'ignored';
    const counter = bytes.subarray(0, COUNTER_BYTES);
    const number = Number(counter.readBigUInt64BE());
    if (number < this.#expected) return 'ignored';
    const plain = nacl.secretbox.open(
      bytes.subarray(COUNTER_BYTES),
      nonceOf(this.#side, counter),
      this.#key,
    );
    if (plain === null || plain.length === 0) return 'ignored';
    if (number !== this.#expected) return 'lost';
    this.#expected += 1;
    const [type = 0] = plain;
    return { type, body: Buffer.from(plain.buffer, plain.byteOffset + 1, plain.length - 1) };
  }
}

function encodeCounter(counter: number): Buffer {
  const bytes = Buffer.alloc(COUNTER_BYTES);
  bytes.writeBigUInt64BE(BigInt(counter));
  return bytes;
}

function nonceOf(side: Side, counter: Uint8Array): Uint8Array {
  const nonce = new Uint8Array(nacl.secretbox.nonceLength);
  nonce[0] = side;
  nonce.set(counter, nonce.length - COUNTER_BYTES);
  return nonce;
}
