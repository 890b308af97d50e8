import type { Socket } from 'node:net';
import type { Instance } from '../channel/instance.ts';
import type { Address } from '../dialects/address.ts';

/** What a request waits for that has nothing else to do. */
export interface Wait {
  readonly address: Address;
  /** The ETag of what its guest has already. */
  readonly etag: string;
  readonly waitMs: number;
}

/**
 * @param bytes what the parser has to read now: the head of the request, and what came behind it
 * @param isOver false when the client said something more, and the request has to go on waiting
 */
type Revive = (socket: Socket, bytes: Buffer, isOver: boolean) => void;

/** A request that was parked, and the connection that it came on. */
export interface Parked {
  readonly instance: Instance;
  readonly socket: Socket;
  /** As it came: it is parsed once more. */
  readonly head: string;
  readonly wait: Wait;
}

/**
 * Connections whose request waits for a change, without all that node:http holds of a request that
 * is under way, which is twice what the connection takes itself. Thousands of agents wait for
 * hours.
 */
export class ParkedRequests implements Disposable {
  readonly #parked = new Set<ParkedRequest>();
  /** Those whose wait is over, in the order in which it was. */
  readonly #due = new Set<ParkedRequest>();
  readonly #revive: Revive;

  constructor(revive: Revive) {
    this.#revive = revive;
  }

  park(parked: Parked): void {
    const request = new ParkedRequest(parked, this.#revive, {
      isOver: () => this.#wake(request),
      isGone: () => {
        this.#parked.delete(request);
        this.#due.delete(request);
      },
    });
    this.#parked.add(request);
  }

  [Symbol.dispose](): void {
    for (const { socket } of [...this.#parked]) socket.destroy();
  }

  /**
   * Each is parsed and answered: all of one guest's at once would keep every other guest waiting.
   */
  #wake(request: ParkedRequest): void {
    if (this.#due.size === 0) setImmediate(this.#wakeSome);
    this.#due.add(request);
  }

  readonly #wakeSome = (): void => {
    for (const request of [...this.#due].slice(0, AT_ONCE)) request.end(true);
    if (this.#due.size > 0) setImmediate(this.#wakeSome);
  };
}

/** Requests that are woken in one turn: with all the headers that each may have, 20 ms. */
const AT_ONCE = 16;

/** What the one who holds it is told. */
interface Holder {
  readonly isOver: () => void;
  readonly isGone: () => void;
}

/** INVARIANT: it is read by nobody else, and ends or is revived once. */
class ParkedRequest {
  readonly socket: Socket;
  readonly #parked: Parked;
  readonly #revive: Revive;
  readonly #holder: Holder;
  readonly #timer: NodeJS.Timeout;

  constructor(parked: Parked, revive: Revive, holder: Holder) {
    const { instance, socket, wait } = parked;
    this.socket = socket;
    this.#parked = parked;
    this.#revive = revive;
    this.#holder = holder;
    this.#timer = setTimeout(holder.isOver, wait.waitMs);
    instance.onChange(this.#onChange);
    socket.on('data', this.#onData).on('end', destroy).on('close', this.#stop);
  }

  end(isOver: boolean, more: Buffer = NOTHING): void {
    this.#stop();
    this.#revive(
      this.socket,
      Buffer.concat([Buffer.from(this.#parked.head, 'latin1'), more]),
      isOver,
    );
  }

  readonly #stop = (): void => {
    clearTimeout(this.#timer);
    this.#parked.instance.offChange(this.#onChange);
    this.socket.off('data', this.#onData).off('end', destroy).off('close', this.#stop);
    this.#holder.isGone();
  };

  readonly #onChange = (): void => {
    if (!isSame(this.#parked)) this.#holder.isOver();
  };

  readonly #onData = (more: Buffer): void => this.end(false, more);
}

const NOTHING = Buffer.alloc(0);

/** Who says nothing more is gone, as for node:http. */
function destroy(this: Socket): void {
  this.destroy();
}

function isSame({ instance, wait: { address, etag } }: Parked): boolean {
  try {
    const resource = instance.find(address);
    return resource?.kind === 'content' && resource.etag === etag;
  } catch {
    // Whoever answers comes upon it again, and says so.
    return false;
  }
}
