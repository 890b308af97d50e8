import { Transform, type TransformCallback } from 'node:stream';
import { pause } from '../abort/until.ts';

/** After a wait, as many bytes may go at once as the rate allows in this time. */
const BURST_MS = 100;

/** A limit of the bytes per second that several streams send together. */
export class SendRate {
  readonly #bytesPerS: number;
  /** When the bytes that were taken so far have been sent at the rate. */
  #freeAtMs = -Infinity;
  #isLifted = false;

  constructor(bytesPerS: number) {
    this.#bytesPerS = bytesPerS;
  }

  /** Waits until the bytes may be sent. Ends early, without an error, when the signal aborts. */
  async take(bytes: number, signal?: AbortSignal): Promise<void> {
    if (this.#isLifted) return;
    const nowMs = performance.now();
    const startMs = Math.max(nowMs - BURST_MS, this.#freeAtMs);
    this.#freeAtMs = startMs + (bytes / this.#bytesPerS) * 1000;
    if (this.#freeAtMs > nowMs) await pause(this.#freeAtMs - nowMs, signal);
  }

  /** Ends the limit for all bytes that are taken from now on. */
  lift(): void {
    this.#isLifted = true;
  }

  /** Creates a stream that passes bytes on at the rate. */
  slow(): Transform {
    return new SlowedStream(this);
  }
}

class SlowedStream extends Transform {
  readonly #rate: SendRate;

  constructor(rate: SendRate) {
    super();
    this.#rate = rate;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    void this.#rate.take(chunk.length).then(() => done(null, chunk));
  }
}
