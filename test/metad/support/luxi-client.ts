import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** Uses Ganeti's framing like its Python client: JSON, a newline, and a byte 0x03. */
export class LuxiClient implements Disposable {
  readonly #socket: Socket;
  #received = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => (this.#received = Buffer.concat([this.#received, chunk])));
  }

  static async open(path: string): Promise<LuxiClient> {
    const socket = connect(path);
    await once(socket, 'connect');
    socket.on('error', () => undefined);
    return new LuxiClient(socket);
  }

  send(bytes: Buffer | string): void {
    this.#socket.write(bytes);
  }

  stopReading(): void {
    this.#socket.pause();
  }

  /** Returns the next answer, or null when the daemon has closed the connection. */
  async receive(): Promise<unknown> {
    for (;;) {
      const end = this.#received.indexOf(3);
      if (end !== -1) {
        const text = this.#received.subarray(0, end).toString('utf8');
        this.#received = this.#received.subarray(end + 1);
        return JSON.parse(text);
      }
      if (this.#socket.readableEnded || this.#socket.destroyed) return null;
      const waiting = new AbortController();
      const { signal } = waiting;
      const events = [
        once(this.#socket, 'data', { signal }),
        once(this.#socket, 'close', { signal }),
      ];
      await Promise.race(events);
      waiting.abort();
      await Promise.allSettled(events);
    }
  }

  async call(method: string, ...args: unknown[]): Promise<unknown> {
    this.send(`${JSON.stringify({ method, args })}\n\x03`);
    return await this.receive();
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
