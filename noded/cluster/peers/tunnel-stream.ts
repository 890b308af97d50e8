import { constants, type Http2Stream } from 'node:http2';
import { Duplex } from 'node:stream';

const { NGHTTP2_NO_ERROR } = constants;

/**
 * Implements one end of a byte stream over a stream of HTTP/2. Each direction ends on its own.
 *
 * Node emits `end` for an HTTP/2 stream that was reset, and destroys without an error code. Here, a
 * stream that was cut never looks complete.
 */
export class TunnelStream extends Duplex {
  readonly #inner: Http2Stream;
  #isPeerGone = false;

  constructor(inner: Http2Stream) {
    super();
    this.#inner = inner;
    inner.pause();
    inner.on('data', (bytes: Buffer) => {
      if (!this.destroyed && !this.push(bytes)) inner.pause();
    });
    inner.once('end', () => {
      if (inner.rstCode === NGHTTP2_NO_ERROR) this.push(null);
      else this.destroy(resetError());
    });
    inner.once('close', () => this.#lost());
    // A close follows, which has the same effect.
    inner.on('error', () => undefined);
  }

  /** The other node may close a stream that it has ended. Received data stays readable. */
  #lost(): void {
    this.#isPeerGone = true;
    const isWhole = this.#inner.rstCode === NGHTTP2_NO_ERROR && this.#inner.readableEnded;
    if (!isWhole) this.destroy(resetError());
  }

  override _read(): void {
    this.#inner.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#isPeerGone) done();
    else this.#inner.write(chunk, () => done());
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    const last = chunks.at(-1);
    if (this.#isPeerGone || last === undefined) return done();
    this.#inner.cork();
    for (const { chunk } of chunks.slice(0, -1)) this.#inner.write(chunk);
    this.#inner.write(last.chunk, () => done());
    this.#inner.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#isPeerGone) done();
    else this.#inner.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // `close` ends the stream before the reset, so the sent bytes would look complete.
    if (!this.writableFinished) this.#inner.destroy(resetError());
    else if (!this.#isPeerGone) this.#inner.close(NGHTTP2_NO_ERROR);
    this.#inner.resume();
    done(error);
  }
}

function resetError(): Error {
  return Object.assign(new Error('the other node closed the connection'), { code: 'ECONNRESET' });
}
