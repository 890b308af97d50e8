import type { Readable } from 'node:stream';

export interface LineLimit {
  /** Limit of characters in a line. */
  readonly maxLength: number;
  /** Treatment of a longer line: cut it, or refuse the rest of the stream. */
  readonly longer: 'cut' | 'refuse';
}

/** Splits a stream of text into lines. Never holds more than the limit. */
export class LineSplitter {
  readonly #limit: LineLimit;
  #rest = '';

  constructor(limit: LineLimit) {
    this.#limit = limit;
  }

  /**
   * @returns the completed lines, without their ends
   * @throws RangeError when a line exceeds a limit that refuses; the splitter is unusable then
   */
  push(text: string): readonly string[] {
    const parts = text.split('\n');
    const last = parts.pop() ?? '';
    const lines = parts.map((part) => {
      this.#keep(part);
      return this.end();
    });
    this.#keep(last);
    return lines;
  }

  /** @returns the unfinished last line, which may be empty */
  end(): string {
    const rest = this.#rest;
    this.#rest = '';
    return rest;
  }

  #keep(part: string): void {
    const { maxLength, longer } = this.#limit;
    if (longer === 'refuse' && this.#rest.length + part.length > maxLength)
      throw new RangeError(`a line has more than ${maxLength} characters`);
    this.#rest += part.slice(0, maxLength - this.#rest.length);
  }
}

/**
 * Yields the complete lines of a stream without empty ones. An unfinished last line is omitted.
 * @throws RangeError for a line over `maxLength` characters that must be refused
 */
export async function* readLines(
  stream: Readable,
  maxLength: number,
  longer: LineLimit['longer'] = 'refuse',
): AsyncGenerator<string, void> {
  const splitter = new LineSplitter({ maxLength, longer });
  // setEncoding makes the chunks strings.
  for await (const text of stream.setEncoding('utf8') as AsyncIterable<string>)
    for (const line of splitter.push(text)) if (line !== '') yield line;
}

/** `qemu-img: warning: …`, `WARNING: …` */
const WARNING = /^(?:[\w./-]+: )?warning: /i;

/**
 * Returns the last line of a program's output, which is the reason when it failed. Warnings only
 * count when there is nothing else. Empty for no output.
 */
export function lastLineOf(text: string): string {
  const lines = text.trim().split('\n');
  return lines.findLast((line) => line !== '' && !WARNING.test(line)) ?? lines.at(-1) ?? '';
}

/**
 * Returns a line as a log shows it: the last state of a progress bar, whose states `\r` separates.
 * Control characters become `?`, so that escape sequences of a script do not reach a terminal.
 */
export function cleanLine(line: string): string {
  const shown = line.split('\r').findLast((part) => part !== '') ?? '';
  // eslint-disable-next-line no-control-regex -- the expression looks for control characters
  return shown.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '?');
}
