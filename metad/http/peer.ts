import type { Socket } from 'node:net';
import type { Instance } from '../channel/instance.ts';
import { MAX_UNANSWERED_PER_CONNECTION } from '../config/limits.ts';
import type { Wait } from './parked-requests.ts';

/**
 * The guest at the other end of a connection, and the number of its outstanding requests.
 *
 * INVARIANT: the instance counts these requests too, and no longer does when the connection ends.
 */
export class Peer {
  readonly instance: Instance;
  readonly isGenuine: boolean;
  readonly #socket: Socket;
  #unanswered = 0;
  #isClosed = false;

  constructor(instance: Instance, isGenuine: boolean, socket: Socket) {
    this.instance = instance;
    this.isGenuine = isGenuine;
    this.#socket = socket;
    socket.on('close', () => {
      this.#isClosed = true;
      instance.unanswered -= this.#unanswered;
    });
  }

  get isIdle(): boolean {
    return this.#unanswered === 0;
  }

  /** Status of a body that stopped the parser; undefined when the number of requests did. */
  refusal: 400 | 411 | undefined;

  /** How to treat a revived request; reset by the next request of the connection. */
  revival: 'answer' | 'wait' | undefined;

  /** The wait of the request that the gate took out. */
  wait: Wait | undefined;

  /** Whether one more request may wait for its answer. A revived request was admitted before. */
  get mayAsk(): boolean {
    if (this.revival !== undefined) return true;
    return (
      this.#unanswered < MAX_UNANSWERED_PER_CONNECTION &&
      this.instance.unanswered < this.instance.maxUnanswered
    );
  }

  /**
   * Resets the connection of a guest that exceeds its limits, and keeps the guest out for a while.
   */
  cutOff(): void {
    this.instance.keepOut();
    this.#socket.resetAndDestroy();
  }

  asked(): void {
    this.#unanswered++;
    this.instance.unanswered++;
  }

  /** Listener for `finish` of a response, one function for the whole connection. */
  readonly answered = (): void => {
    if (this.#isClosed) return;
    this.#unanswered--;
    this.instance.unanswered--;
  };
}
