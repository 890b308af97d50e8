/** A stream is longer than the limit; the rest is not read. */
export class TooLong extends Error {
  constructor(maxBytes: number) {
    super(`more than ${maxBytes} bytes`);
    this.name = 'TooLong';
  }
}

/**
 * Returns all bytes of a stream without an encoding.
 * @throws TooLong over the limit, or the stream's error
 */
export async function collect(stream: AsyncIterable<unknown>, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of stream) {
    const bytes = chunk as Buffer; // no encoding is set
    total += bytes.length;
    if (total > maxBytes) throw new TooLong(maxBytes);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks, total);
}
