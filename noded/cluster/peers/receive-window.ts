/** Streams that a node opened, and as many that others opened to it. */
export const MAX_STREAMS = 256;
/** What a frame weighs beside its bytes: its seal, the heads of its message, and Redis' own. */
export const FRAME_COST_BYTES = 128;
/** What may be on its way in a stream from its beginning on. */
export const FIRST_WINDOW_BYTES = 8 * 1024;
/** What a stream gets when there are few of them. */
export const MAX_WINDOW_BYTES = 256 * 1024;
/**
 * What all windows of a node may have beyond their first: with those, no more than 7 MiB wait in
 * Redis for a node that does not read. Redis ends the connection of a subscriber, and with it all
 * streams of that node, that is 32 MiB behind, or 8 MiB for a minute (`client-output-buffer-limit
 * pubsub`).
 */
const POOL_BYTES = 3 * 1024 * 1024;
/** One stream takes a part of what is left, so that something is left for the next. */
const LARGEST_SHARE = 8;

/** What the windows of all streams of a node share. */
export class WindowPool {
  #free = POOL_BYTES;

  /** @returns as much as there is for one */
  lease(wantedBytes: number): number {
    const given = Math.min(wantedBytes, Math.floor(this.#free / LARGEST_SHARE));
    this.#free -= given;
    return given;
  }

  giveBack(bytes: number): void {
    this.#free += bytes;
  }
}

/**
 * How much the other end of a stream may send: bytes of frames and what these weigh.
 *
 * INVARIANTS: what the other end may still send and what waits for the reader are together the
 * first window and what is leased of the pool, or less; what is leased is given back once.
 */
export class ReceiveWindow {
  readonly #pool: WindowPool;
  /** What the other end may send yet. */
  #allowed = FIRST_WINDOW_BYTES;
  /** What it sent that the reader has not taken. */
  #waiting = 0;
  #leased = 0;
  /** What it could send after the last grant. */
  #granted = FIRST_WINDOW_BYTES;
  #isClosed = false;

  constructor(pool: WindowPool) {
    this.#pool = pool;
  }

  /** A frame came. @returns false when it is more than the other end may send */
  receive(bodyBytes: number): boolean {
    const cost = bodyBytes + FRAME_COST_BYTES;
    this.#allowed -= cost;
    this.#waiting += cost;
    return this.#allowed >= 0;
  }

  /** The reader took a frame. */
  take(bodyBytes: number): void {
    const cost = bodyBytes + FRAME_COST_BYTES;
    this.#waiting -= cost;
    const returned = Math.min(cost, this.#leased);
    this.#leased -= returned;
    this.#pool.giveBack(returned);
  }

  /**
   * @returns what the other end may send more from now on; 0 as long as it has half of what it had
   */
  grant(): number {
    const held = this.#allowed + this.#waiting;
    if (this.#isClosed || held > this.#granted / 2) return 0;
    const first = FIRST_WINDOW_BYTES - (held - this.#leased);
    const more = this.#pool.lease(MAX_WINDOW_BYTES - FIRST_WINDOW_BYTES - this.#leased);
    this.#leased += more;
    this.#allowed += first + more;
    this.#granted = this.#allowed + this.#waiting;
    return first + more;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pool.giveBack(this.#leased);
    this.#leased = 0;
  }
}
