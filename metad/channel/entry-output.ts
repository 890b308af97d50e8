import { StringDecoder } from 'node:string_decoder';
import { MAX_ENTRY_OUTPUT_BYTES, MAX_OUTPUT_TEXT_LENGTH } from '#shared/contract/lifecycle.ts';
import { MAX_OUTPUT_LINE_LENGTH } from '../config/limits.ts';

/** Whole lines of a script's output. */
export interface OutputPiece {
  readonly text: string;
  /** Bytes before it that were counted and not kept. */
  readonly lostBytes: number;
}

/**
 * What one script printed, as its guest says it by offsets. What is here already is dropped; what
 * is left out counts as lost, and so does what comes behind the bound.
 *
 * INVARIANT: a line leaves whole, or cut behind its beginning, so that a value in it can be masked
 * before any part of it is told.
 */
export class EntryOutput {
  readonly entry: string;
  readonly #decoder = new StringDecoder('utf8');
  /** The offset of the next byte that is not here. */
  #end = 0;
  #rest = '';
  #lostBytes = 0;

  constructor(entry: string) {
    this.entry = entry;
  }

  /** @returns the offset that comes next */
  get end(): number {
    return this.#end;
  }

  /** @param mask hides values in a line, and cuts it to the length of a piece of output */
  push(offset: number, bytes: Buffer, mask: (line: string) => string): readonly OutputPiece[] {
    const fresh = bytes.subarray(Math.max(0, this.#end - offset));
    const start = Math.max(offset, this.#end);
    if (fresh.length === 0 && start === this.#end) return [];
    this.#lostBytes += start - this.#end;
    const kept = fresh.subarray(0, Math.max(0, MAX_ENTRY_OUTPUT_BYTES - start));
    this.#lostBytes += fresh.length - kept.length;
    this.#end = start + fresh.length;
    const lines = this.#decoder.write(kept).split('\n');
    const whole = lines.slice(0, -1).map((line) => `${mask(this.#takeRest(line))}\n`);
    this.#keep(lines.at(-1) ?? '');
    return this.#pack(whole);
  }

  /** The script has ended. */
  flush(mask: (line: string) => string): readonly OutputPiece[] {
    const last = mask(this.#takeRest(this.#decoder.end()));
    if (last === '' && this.#lostBytes === 0) return [];
    return this.#pack([last]);
  }

  #keep(text: string): void {
    const room = MAX_OUTPUT_LINE_LENGTH - this.#rest.length;
    this.#rest += text.slice(0, room);
    if (text.length > room) this.#lostBytes += Buffer.byteLength(text.slice(room));
  }

  /** @returns a line that ends here */
  #takeRest(text: string): string {
    this.#keep(text);
    const line = this.#rest;
    this.#rest = '';
    // The mask cuts it there.
    this.#lostBytes += Buffer.byteLength(line.slice(MAX_OUTPUT_TEXT_LENGTH - 1));
    return line;
  }

  /** As few pieces as hold the lines. */
  #pack(lines: readonly string[]): readonly OutputPiece[] {
    const pieces: OutputPiece[] = [];
    let text = '';
    const put = (): void => {
      pieces.push({ text, lostBytes: pieces.length === 0 ? this.#lostBytes : 0 });
      text = '';
    };
    for (const line of lines) {
      if (text !== '' && text.length + line.length > MAX_OUTPUT_TEXT_LENGTH) put();
      text += line;
    }
    if (lines.length > 0) put();
    if (pieces.length > 0) this.#lostBytes = 0;
    return pieces;
  }
}
