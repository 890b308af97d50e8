/** Limit of own streams, and separately of streams from other nodes. */
export const MAX_STREAMS = 256;
/**
 * A node may have this multiple of the free streams, which is four fifths of all for a single node.
 */
const SHARE_OF_FREE = 4;

/**
 * Reserves streams for other nodes when one node opens many.
 * @param opened the opening node of each accepted stream
 */
export function hasItsShare(node: string, opened: readonly string[]): boolean {
  const theirs = opened.filter((from) => from === node).length;
  return theirs >= SHARE_OF_FREE * (MAX_STREAMS - opened.length);
}

/** Overhead of a frame: its seal, and the headers of its message and of Redis. */
export const FRAME_COST_BYTES = 128;
/** Initial window of a stream. */
export const FIRST_WINDOW_BYTES = 8 * 1024;
/** Window of a stream when there are few. */
export const MAX_WINDOW_BYTES = 256 * 1024;
/**
 * Extra bytes of all windows of a node. With the initial windows at most 7 MiB wait in Redis for a
 * node that does not read. Redis disconnects a subscriber that is 32 MiB behind, or 8 MiB for a
 * minute (`client-output-buffer-limit pubsub`), which would end all streams of the node.
 */
const POOL_BYTES = 3 * 1024 * 1024;
/** A stream gets this part of the free bytes, so that some remain for others. */
const LARGEST_SHARE = 8;

export class WindowPool {
  #free = POOL_BYTES;

  /** @returns the granted bytes */
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
 * Counts the bytes that the other end of a stream may send, with the overhead of frames.
 *
 * INVARIANTS: allowed and waiting bytes together are at most the first window plus the lease;
 * leased bytes are returned once.
 */
export class ReceiveWindow {
  readonly #pool: WindowPool;
  /** Bytes that the other end may still send. */
  #allowed = FIRST_WINDOW_BYTES;
  /** Received bytes that wait for the reader. */
  #waiting = 0;
  #leased = 0;
  /** Bytes that it could send after the last grant. */
  #granted = FIRST_WINDOW_BYTES;
  #isClosed = false;

  constructor(pool: WindowPool) {
    this.#pool = pool;
  }

  /** Counts a received frame. @returns false when it exceeds the window */
  receive(bodyBytes: number): boolean {
    const cost = bodyBytes + FRAME_COST_BYTES;
    this.#allowed -= cost;
    this.#waiting += cost;
    return this.#allowed >= 0;
  }

  /** Counts a frame taken by the reader. */
  take(bodyBytes: number): void {
    const cost = bodyBytes + FRAME_COST_BYTES;
    this.#waiting -= cost;
    const returned = Math.min(cost, this.#leased);
    this.#leased -= returned;
    this.#pool.giveBack(returned);
  }

  /** @returns additional bytes for the other end; 0 while it has half of the last grant */
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
