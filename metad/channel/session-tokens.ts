import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { GuestHandover } from '#shared/contract/guest-handover.ts';
import { AppError } from '#shared/errors/app-error.ts';

const MIN_TOKEN_TTL_S = 1;
const MAX_TOKEN_TTL_S = 21_600;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const EXPIRY_BYTES = 8;
const MAC_BYTES = 32;
const TOKEN_BYTES = EXPIRY_BYTES + NONCE_BYTES + MAC_BYTES;
/** base64url of TOKEN_BYTES, without padding. */
const TOKEN_LENGTH = Math.ceil((TOKEN_BYTES * 4) / 3);

export type TokenState = NonNullable<GuestHandover['tokens']>;

/**
 * EC2 session tokens. A token is its expiry time, a nonce and an HMAC with a key of this instance,
 * so that none needs to be stored. A new key ends them all.
 */
export class SessionTokens {
  readonly #key: Buffer;
  readonly #nowMs: () => number;

  /**
   * @param monotonicMs time that never jumps, in milliseconds
   * @param taken state of another metad, whose clock began at another moment
   */
  constructor(monotonicMs: () => number, taken?: TokenState) {
    this.#key = taken === undefined ? randomBytes(KEY_BYTES) : Buffer.from(taken.key, 'base64');
    if (this.#key.length !== KEY_BYTES)
      throw new AppError('VALIDATION', `tokens.key: expected ${KEY_BYTES} bytes`);
    const aheadMs = taken === undefined ? 0 : taken.nowMs - monotonicMs();
    this.#nowMs = () => monotonicMs() + aheadMs;
  }

  create(ttlSeconds: number): string {
    const data = Buffer.alloc(EXPIRY_BYTES + NONCE_BYTES);
    data.writeDoubleBE(this.#nowMs() + ttlSeconds * 1000);
    randomBytes(NONCE_BYTES).copy(data, EXPIRY_BYTES);
    return Buffer.concat([data, this.#sign(data)]).toString('base64url');
  }

  isValid(token: string): boolean {
    if (token.length !== TOKEN_LENGTH) return false;
    const bytes = Buffer.from(token, 'base64url');
    if (bytes.length !== TOKEN_BYTES) return false;
    const data = bytes.subarray(0, EXPIRY_BYTES + NONCE_BYTES);
    if (!timingSafeEqual(this.#sign(data), bytes.subarray(EXPIRY_BYTES + NONCE_BYTES)))
      return false;
    return data.readDoubleBE() > this.#nowMs();
  }

  /** Returns the key and clock with which another metad accepts the same tokens. */
  handOver(): TokenState {
    return { key: this.#key.toString('base64'), nowMs: this.#nowMs() };
  }

  #sign(data: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(data).digest();
  }
}

/** @returns null for anything but a whole number of seconds within the bounds */
export function parseTokenTtl(header: string | undefined): number | null {
  if (header === undefined || !/^\d{1,5}$/.test(header)) return null;
  const seconds = Number(header);
  return seconds >= MIN_TOKEN_TTL_S && seconds <= MAX_TOKEN_TTL_S ? seconds : null;
}
