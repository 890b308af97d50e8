import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';

export type LuxiRequest =
  | { readonly method: 'echo'; readonly text: string }
  | { readonly method: 'updateConfig'; readonly instance: unknown };

/** A refused request; the connection stays open. The text is Ganeti's where Ganeti has one. */
export class LuxiRefusal extends Error {}

/** Bytes that are not a request: the connection ends after the answer, as with Ganeti's daemon. */
export class LuxiParseFailure extends Error {}

/** An instance has some hundreds. Parsing 8 MiB of them would delay all guests for seconds. */
const MAX_VALUES = 50_000;

/** @throws LuxiRefusal, LuxiParseFailure */
export function parseLuxiRequest(text: string): LuxiRequest {
  if (countJsonValues(Buffer.from(text), MAX_VALUES) > MAX_VALUES)
    throw new LuxiParseFailure(`more than ${MAX_VALUES} values`);
  const value = parseJson(text);
  if (value === undefined) throw new LuxiParseFailure('not JSON');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new LuxiParseFailure('expected an object');
  }
  // A JSON object; both keys are checked below.
  const { method, args } = value as { method?: unknown; args?: unknown };
  if (typeof method !== 'string')
    throw new LuxiParseFailure("key 'method' is missing or not a string");
  if (args === undefined) throw new LuxiParseFailure("key 'args' not found");
  if (method !== 'echo' && method !== 'updateConfig') {
    throw new LuxiRefusal(`No such method: ${method.slice(0, 100)}`);
  }
  if (!Array.isArray(args) || args.length !== 1) {
    throw new LuxiRefusal('RPC input: Unable to read 1 tuple');
  }
  // Array.isArray widens to any[].
  const [argument] = args as unknown[];
  if (method === 'updateConfig') return { method, instance: argument };
  if (typeof argument !== 'string') throw new LuxiRefusal('RPC input: Unable to read String');
  return { method, text: argument };
}

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
