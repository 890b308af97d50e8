import type { Socket } from 'node:net';
import type { Instance } from '../channel/instance.ts';
import type { Address } from '../dialects/address.ts';
import { wholeOrPartial } from './serve-content.ts';

export interface Wait {
  readonly address: Address;
  /** Parameters that select a form of the content. */
  readonly query: URLSearchParams | null;
  /** The ETag of the guest's present content. */
  readonly etag: string;
  readonly waitMs: number;
}

/**
 * @param bytes input for the parser: the head of the request, and later bytes
 * @param isOver false when the client sent more, and the request must wait again
 */
type Revive = (socket: Socket, bytes: Buffer, isOver: boolean) => void;

export interface Parked {
  readonly instance: Instance;
  readonly socket: Socket;
  /** As received: it is parsed again. */
  readonly head: string;
  readonly wait: Wait;
}

/**
 * Connections whose request waits for a change, without node:http's request and response, which
 * take twice as much memory as the connection. Thousands of agents wait for hours.
 */
export class ParkedRequests implements Disposable {
  readonly #parked = new Set<ParkedRequest>();
  /** Requests whose wait is over, in that order. */
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
   * Wakes requests in groups: to parse and answer all requests of one guest at once would delay
   * every other guest.
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

/** Requests woken in one turn. With the longest possible headers they take 20 ms. */
const AT_ONCE = 16;

/** Callbacks to the owner of a parked request. */
interface Holder {
  readonly isOver: () => void;
  readonly isGone: () => void;
}

/** INVARIANT: the parked socket has no other reader, and is ended or revived once. */
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

/** As in node:http, a half-closed connection is closed. */
function destroy(this: Socket): void {
  this.destroy();
}

function isSame({ instance, wait: { address, query, etag } }: Parked): boolean {
  try {
    const resource = instance.find(address);
    return resource?.kind === 'content' && wholeOrPartial(resource, query).etag === etag;
  } catch {
    // The answer meets the same failure and reports it.
    return false;
  }
}
