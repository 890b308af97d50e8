import { Duplex } from 'node:stream';
import { FrameOpener, FrameSealer, FrameType, MAX_FRAME_BODY_BYTES, type Side } from './frame.ts';
import {
  FIRST_WINDOW_BYTES,
  FRAME_COST_BYTES,
  MAX_WINDOW_BYTES,
  ReceiveWindow,
  type WindowPool,
} from './receive-window.ts';

const CREDIT_BYTES = 4;

export interface PeerStreamOptions {
  /** Only shared by the two ends of this stream. */
  readonly key: Uint8Array;
  readonly side: Side;
  /** Shared by all streams of this node. */
  readonly pool: WindowPool;
  /**
   * Sends a frame to the other node, in the order of the calls. Rejects when it has no receiver.
   */
  readonly send: (frame: Buffer) => Promise<void>;
  readonly onClosed: () => void;
}

/**
 * Implements one end of a byte stream to another node. Each direction ends on its own.
 *
 * INVARIANTS: frames arrive in order and without a gap, or the stream is destroyed; at most
 * MAX_WINDOW_BYTES wait for the reader.
 */
export class PeerStream extends Duplex {
  readonly #options: PeerStreamOptions;
  readonly #sealer: FrameSealer;
  readonly #opener: FrameOpener;
  readonly #received: Buffer[] = [];
  readonly #window: ReceiveWindow;
  #credit = FIRST_WINDOW_BYTES;
  #writing: { bytes: Buffer; done: (error?: Error) => void } | null = null;
  #wantsMore = false;
  #hasEnd = false;
  #isPeerGone = false;
  /** Time of the last frame from the other end, and of the last frame sent. */
  #heardAtMs = performance.now();
  #sentAtMs = performance.now();

  constructor(options: PeerStreamOptions) {
    super();
    this.#options = options;
    this.#sealer = new FrameSealer(options.key, options.side);
    this.#opener = new FrameOpener(options.key, options.side === 0 ? 1 : 0);
    this.#window = new ReceiveWindow(options.pool);
  }

  /** @returns whether the other end sealed it */
  receive(bytes: Buffer): boolean {
    const frame = this.#opener.open(bytes);
    if (frame === 'ignored') return false;
    this.#heardAtMs = performance.now();
    if (frame === 'lost') this.destroy(resetError('frames were lost'));
    else this.#take(frame.type, frame.body);
    return true;
  }

  /** Sends a ping, or destroys the stream when the other end is silent for too long. */
  keepAlive(silenceMs: number, maxSilenceMs: number): void {
    const now = performance.now();
    if (now - this.#heardAtMs > maxSilenceMs)
      this.destroy(resetError('the other node stopped responding'));
    else if (now - this.#sentAtMs >= silenceMs) void this.#send(FrameType.ping);
  }

  #take(type: number, body: Buffer): void {
    switch (type) {
      case FrameType.data:
        if (!this.#window.receive(body.length) || this.#hasEnd) {
          this.destroy(resetError('the other node exceeds its send window'));
          return;
        }
        this.#received.push(body);
        this.#deliver();
        return;
      case FrameType.end:
        this.#hasEnd = true;
        this.#deliver();
        return;
      case FrameType.credit:
        if (body.length !== CREDIT_BYTES) return;
        this.#credit = Math.min(this.#credit + body.readUInt32BE(), MAX_WINDOW_BYTES);
        this.#flush();
        return;
      case FrameType.close:
        this.#isPeerGone = true;
        // Received data stays readable.
        if (this.#hasEnd) this.#flush();
        else this.destroy(resetError('the other node closed the connection'));
        return;
      default: // a ping, or a type of later releases
    }
  }

  override _read(): void {
    this.#wantsMore = true;
    this.#deliver();
  }

  #deliver(): void {
    while (this.#wantsMore) {
      const bytes = this.#received.shift();
      if (bytes === undefined) break;
      this.#window.take(bytes.length);
      this.#wantsMore = this.push(bytes);
    }
    const granted = this.#window.grant();
    if (granted > 0) {
      const body = Buffer.alloc(CREDIT_BYTES);
      body.writeUInt32BE(granted);
      void this.#send(FrameType.credit, body);
    }
    if (this.#hasEnd && this.#wantsMore && this.#received.length === 0) {
      this.#wantsMore = false;
      this.push(null);
    }
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#writing = { bytes: chunk, done };
    this.#flush();
  }

  #flush(): void {
    const writing = this.#writing;
    if (writing === null) return;
    let sent = Promise.resolve();
    while (writing.bytes.length > 0 && this.#credit > FRAME_COST_BYTES && !this.#isPeerGone) {
      const room = Math.min(MAX_FRAME_BODY_BYTES, this.#credit - FRAME_COST_BYTES);
      const bytes = writing.bytes.subarray(0, room);
      this.#credit -= bytes.length + FRAME_COST_BYTES;
      writing.bytes = writing.bytes.subarray(bytes.length);
      sent = this.#send(FrameType.data, bytes);
    }
    // The peer has left.
    if (writing.bytes.length > 0 && !this.#isPeerGone) return;
    this.#writing = null;
    void sent.then(() => writing.done());
  }

  override _final(done: (error?: Error) => void): void {
    void this.#send(FrameType.end).then(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#isPeerGone) void this.#send(FrameType.close);
    this.#window.close();
    this.#options.onClosed();
    done(error);
  }

  /** Resolves when the frame was sent. A failure destroys the stream. */
  #send(type: FrameType, body: Buffer = Buffer.alloc(0)): Promise<void> {
    this.#sentAtMs = performance.now();
    return this.#options.send(this.#sealer.seal(type, body)).catch((error: unknown) => {
      this.#isPeerGone = true;
      this.destroy(resetError('the other node is unreachable', error));
    });
  }
}

function resetError(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code: 'ECONNRESET' });
}
