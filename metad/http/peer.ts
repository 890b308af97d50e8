import type { Socket } from 'node:net';
import type { Instance } from '../channel/instance.ts';
import { MAX_UNANSWERED_PER_CONNECTION } from '../config/limits.ts';
import type { Wait } from './parked-requests.ts';

/**
 * The guest at the other end of a connection, and how many of its requests wait there for the end
 * of their answers.
 *
 * INVARIANT: what it counts is counted by its instance too, and taken back there when the
 * connection ends.
 */
export class Peer {
  readonly instance: Instance;
  /** Whether the source address is one that this guest may have. */
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

  /** What the parser was stopped for, when it was not for the number of requests. */
  refusal: 400 | 411 | undefined;

  /** What a request that was parked comes back for; taken by the next one of the connection. */
  revival: 'answer' | 'wait' | undefined;

  /** What its request that the gate has taken out waits for. */
  wait: Wait | undefined;

  /** Whether one more request may wait for its answer; one that was parked was let in before. */
  get mayAsk(): boolean {
    if (this.revival !== undefined) return true;
    return (
      this.#unanswered < MAX_UNANSWERED_PER_CONNECTION &&
      this.instance.unanswered < this.instance.maxUnanswered
    );
  }

  /**
   * Ends the connection, since its guest goes beyond what it may have under way, and keeps the
   * guest out for a while.
   */
  cutOff(): void {
    this.instance.keepOut();
    this.#socket.resetAndDestroy();
  }

  asked(): void {
    this.#unanswered++;
    this.instance.unanswered++;
  }

  /** What `finish` of a response calls: one function for all of a connection. */
  readonly answered = (): void => {
    if (this.#isClosed) return;
    this.#unanswered--;
    this.instance.unanswered--;
  };
}
