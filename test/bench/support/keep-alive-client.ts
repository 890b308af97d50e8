import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** Connections that repeat a request as soon as it is answered, and measure its latency. */
export class KeepAliveClient implements AsyncDisposable {
  readonly #connections: readonly Connection[];

  private constructor(connections: readonly Connection[]) {
    this.#connections = connections;
  }

  /** @param addresses one connection to each */
  static async open(
    addresses: readonly string[],
    port: number,
    request: string,
  ): Promise<KeepAliveClient> {
    const connections = addresses.map(async (host) => {
      const socket = connect({ host, port, noDelay: true });
      await once(socket, 'connect');
      return new Connection(socket, request);
    });
    return new KeepAliveClient(await Promise.all(connections));
  }

  /** @returns the latency of each answer in milliseconds */
  async run(requests: number): Promise<readonly number[]> {
    const each = Math.ceil(requests / this.#connections.length);
    const times = await Promise.all(
      this.#connections.map(async (connection) => await connection.run(each)),
    );
    return times.flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
  }
}

class Connection {
  readonly #socket: Socket;
  readonly #request: string;
  /** Length of an answer in bytes; all answers have the same. */
  #answerBytes = 0;

  constructor(socket: Socket, request: string) {
    this.#socket = socket;
    this.#request = request;
  }

  async run(requests: number): Promise<number[]> {
    return await new Promise((resolve, reject) => {
      const times: number[] = [];
      let received = 0;
      let sentAt = 0;
      const send = (): void => {
        received = 0;
        sentAt = performance.now();
        this.#socket.write(this.#request);
      };
      const onData = (chunk: Buffer): void => {
        this.#answerBytes ||= lengthOf(chunk.toString('latin1'));
        received += chunk.length;
        if (received < this.#answerBytes) return;
        times.push(performance.now() - sentAt);
        if (times.length < requests) return send();
        this.#socket.off('data', onData).off('close', onClose);
        resolve(times);
      };
      const onClose = (): void => reject(new Error('the server closed the connection'));
      this.#socket.on('data', onData).on('close', onClose).on('error', reject);
      send();
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}

function lengthOf(start: string): number {
  if (!start.startsWith('HTTP/1.1 200 ')) throw new Error(`refused: ${start.slice(0, 80)}`);
  const length = Number(/\r\nContent-Length: (\d+)/i.exec(start)?.[1]);
  return start.indexOf('\r\n\r\n') + 4 + length;
}
