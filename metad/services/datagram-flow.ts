import type { Socket } from 'node:net';
import { MAX_DATAGRAM_BYTES } from '#shared/contract/metad-control.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { upgradeOverSocket } from '#shared/socket/http-request.ts';
import { DatagramReader, encodeDatagram } from '#shared/stream/datagram-frames.ts';
import { MAX_DATAGRAM_BYTES_WAITING, MAX_DATAGRAMS_WAITING } from '../config/limits.ts';

/** The node daemon looks for the service meanwhile; it gives up earlier by itself. */
const OPEN_TIMEOUT_MS = 15_000;

export interface DatagramFlowOptions {
  readonly socketPath: string;
  readonly uuid: string;
  readonly service: string;
  readonly onAnswer: (datagram: Buffer) => void;
  /** @param reason why there is none; null when there is */
  readonly onOpened: (status: number, reason: string | null) => void;
  /** Once, when nothing more will be taken or answered. */
  readonly onEnd: () => void;
}

/**
 * One source port of a guest at one service, as a stream to the node daemon; that ends it when the
 * guest was silent for a while.
 */
export class DatagramFlow {
  readonly #options: DatagramFlowOptions;
  readonly #abort = new AbortController();
  readonly #reader = new DatagramReader(MAX_DATAGRAM_BYTES);
  /** What came before the stream was there. */
  #waiting: Buffer[] = [];
  #stream: Socket | undefined;

  constructor(options: DatagramFlowOptions) {
    this.#options = options;
    void this.#open();
  }

  /** @returns false when it was dropped, since too many wait already */
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
      // No stream of datagrams: the guest's next one opens another.
      this.end();
    }
  }
}
