import type { Socket } from 'node:net';
import type { Instance } from '../channel/instance.ts';
import type { Address } from '../dialects/address.ts';

/** What a request waits for that has nothing else to do. */
export interface Wait {
  readonly address: Address;
  /** Of what its guest has already. */
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
 * is under way, which is twice what the connection takes itself. Thousands of agents wait for hours.
 */
export class ParkedRequests implements Disposable {
  readonly #parked = new Set<ParkedRequest>();
  readonly #revive: Revive;

  constructor(revive: Revive) {
    this.#revive = revive;
  }

  park(parked: Parked): void {
    this.#parked.add(new ParkedRequest(parked, this.#revive, this.#parked));
  }

  [Symbol.dispose](): void {
    for (const { socket } of [...this.#parked]) socket.destroy();
  }
}

/** INVARIANT: it is read by nobody else, and ends or is revived once. */
class ParkedRequest {
  readonly socket: Socket;
  readonly #parked: Parked;
  readonly #revive: Revive;
  readonly #all: Set<ParkedRequest>;
  readonly #timer: NodeJS.Timeout;

  constructor(parked: Parked, revive: Revive, all: Set<ParkedRequest>) {
    const { instance, socket, wait } = parked;
    this.socket = socket;
    this.#parked = parked;
    this.#revive = revive;
    this.#all = all;
    this.#timer = setTimeout(endWait, wait.waitMs, this);
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
    this.#all.delete(this);
  };

  readonly #onChange = (): void => {
    if (!isSame(this.#parked)) this.end(true);
  };

  readonly #onData = (more: Buffer): void => this.end(false, more);
}

const NOTHING = Buffer.alloc(0);

function endWait(parked: ParkedRequest): void {
  parked.end(true);
}

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
