import { CallError } from './template-error.ts';

export class Output {
  readonly #parts: string[] = [];
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  write(text: string): void {
    this.#bytes += Buffer.byteLength(text);
    if (this.#bytes > this.#maxBytes)
      throw new CallError(`the result is larger than ${this.#maxBytes} bytes`);
    this.#parts.push(text);
  }

  toString(): string {
    return this.#parts.join('');
  }
}
