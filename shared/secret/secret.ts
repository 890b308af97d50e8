import { inspect } from 'node:util';
import { REDACTED } from '../contract/redacted.ts';

/**
 * A value that must not be shown. Printing, interpolating, inspecting, cloning or serialising it
 * gives `<redacted>`; only `reveal` opens it, so a search for that name lists every place where a
 * secret can leave.
 *
 * INVARIANT: the value lives in a private field of this object and nowhere else.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  static reveal(secret: Secret): string {
    return secret.#value;
  }

  /** Returns whether this is the value: one bit, so that callers can compare without `reveal`. */
  equals(value: string): boolean {
    return this.#value === value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }

  [Symbol.toPrimitive](): string {
    return REDACTED;
  }
}

/** Opens a secret. Call it only where the value leaves for its one destination. */
export function reveal(secret: Secret): string {
  return Secret.reveal(secret);
}
