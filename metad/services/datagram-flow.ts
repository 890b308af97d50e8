import type { Socket } from 'node:net';
import { MAX_DATAGRAM_BYTES } from '#shared/contract/metad-control.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { upgradeOverSocket } from '#shared/socket/http-request.ts';
import { DatagramReader, encodeDatagram } from '#shared/stream/datagram-frames.ts';
import { MAX_DATAGRAM_BYTES_WAITING, MAX_DATAGRAMS_WAITING } from '../config/limits.ts';

/** Fallback: the node daemon gives up earlier. */
const OPEN_TIMEOUT_MS = 15_000;

export interface DatagramFlowOptions {
  readonly socketPath: string;
  readonly uuid: string;
  readonly service: string;
  readonly onAnswer: (datagram: Buffer) => void;
  /** @param reason of a failure; null on success */
  readonly onOpened: (status: number, reason: string | null) => void;
  /** Called once; afterwards the flow takes and answers nothing. */
  readonly onEnd: () => void;
}

/**
 * One source port of a guest at one service, as a stream to the node daemon, which ends it after
 * silence of the guest.
 */
export class DatagramFlow {
  readonly #options: DatagramFlowOptions;
  readonly #abort = new AbortController();
  readonly #reader = new DatagramReader(MAX_DATAGRAM_BYTES);
  /** Frames sent before the stream was open. */
  #waiting: Buffer[] = [];
  #stream: Socket | undefined;

  constructor(options: DatagramFlowOptions) {
    this.#options = options;
    void this.#open();
  }

  /** @returns false when too much waits already, and the datagram was dropped */
  ask(datagram: Buffer): boolean {
    if (this.#stream) {
      if (this.#stream.writableLength > MAX_DATAGRAM_BYTES_WAITING) return false;
      this.#stream.write(encodeDatagram(datagram));
      return true;
    }
    if (this.#waiting.length >= MAX_DATAGRAMS_WAITING) return false;
    this.#waiting.push(encodeDatagram(datagram));
    return true;
  }

  /** Idempotent. */
  end(): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#stream?.destroy();
    this.#waiting = [];
    this.#options.onEnd();
  }

  async #open(): Promise<void> {
    const { socketPath, uuid, service, onOpened } = this.#options;
    const { signal } = this.#abort;
    try {
      const upgraded = await upgradeOverSocket({
        on: socketPath,
        path: `/v1/instances/${uuid}/datagrams/${service}`,
        headers: { host: 'noded' },
        idleTimeoutMs: OPEN_TIMEOUT_MS,
        signal,
      });
      if (upgraded.kind === 'refused') {
        const { statusCode = 502 } = upgraded.answer;
        upgraded.answer.destroy();
        if (!signal.aborted) onOpened(statusCode, `the node daemon answered ${statusCode}`);
        this.end();
      } else if (signal.aborted) {
        upgraded.socket.destroy();
      } else {
        onOpened(101, null);
        this.#use(upgraded.socket);
      }
    } catch (error) {
      if (!signal.aborted) onOpened(502, messageOf(error));
      this.end();
    }
  }

  #use(stream: Socket): void {
    this.#stream = stream;
    for (const frame of this.#waiting.splice(0)) stream.write(frame);
    stream.on('error', () => this.end());
    for (const event of ['end', 'close']) stream.on(event, () => this.end());
    stream.on('data', (chunk: Buffer) => this.#answer(chunk));
  }

  #answer(chunk: Buffer): void {
    try {
      for (const datagram of this.#reader.push(chunk)) {
        if (!this.#abort.signal.aborted) this.#options.onAnswer(datagram);
      }
    } catch {
      // Not a stream of datagrams. The guest's next datagram opens another flow.
      this.end();
    }
  }
}
