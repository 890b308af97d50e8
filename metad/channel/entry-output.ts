import { StringDecoder } from 'node:string_decoder';
import { MAX_ENTRY_OUTPUT_BYTES, MAX_OUTPUT_TEXT_LENGTH } from '#shared/contract/lifecycle.ts';
import { MAX_OUTPUT_LINE_LENGTH } from '../config/limits.ts';

/** Whole lines of a script's output. */
export interface OutputPiece {
  readonly text: string;
  /** Bytes before the text that were counted and not kept. */
  readonly lostBytes: number;
}

/**
 * The output of one script, which the guest reports by offsets. Known bytes are dropped. Missing
 * bytes, and bytes beyond the limit, count as lost.
 *
 * INVARIANT: a line leaves whole, or cut after its beginning, so that a value in it can be masked
 * before any part is reported.
 */
export class EntryOutput {
  readonly entry: string;
  readonly #decoder = new StringDecoder('utf8');
  /** Offset of the next expected byte. */
  #end = 0;
  #rest = '';
  #lostBytes = 0;

  constructor(entry: string) {
    this.entry = entry;
  }

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

  /** Returns the rest after the script has ended. */
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

  /** @returns a line that ends with `text` */
  #takeRest(text: string): string {
    this.#keep(text);
    const line = this.#rest;
    this.#rest = '';
    // The mask cuts the line there.
    this.#lostBytes += Buffer.byteLength(line.slice(MAX_OUTPUT_TEXT_LENGTH - 1));
    return line;
  }

  /** Packs the lines into as few pieces as possible. */
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
