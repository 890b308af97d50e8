import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { systemClock } from '#shared/clock/clock.ts';
import { plainSettings } from '#shared/contract/parameter-keys.ts';
import { silentLogger } from '#shared/log/log.ts';
import { EventLog } from '../../../metad/channel/event-log.ts';
import { Instance } from '../../../metad/channel/instance.ts';
import { Audit } from '../../../metad/http/audit.ts';
import { GuestHandler } from '../../../metad/http/guest-handler.ts';
import type { GuestMetrics } from '../../../metad/http/guest-metrics.ts';
import { GuestServer } from '../../../metad/http/guest-server.ts';
import { sendText } from '../../../metad/http/reply.ts';
import { parseView } from '../../../metad/view/served-view.ts';
import { exampleView } from '../../metad/support/view-fixture.ts';
import type { Target } from '../target.ts';
import { EXPECTED_STATUSES } from '../../metad/support/fuzz-client.ts';
import { generateRequest, RIGHT_REQUEST } from '../../metad/support/request-generator.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';

const REQUESTS_PER_CONNECTION = 4;
const LAST = 'GET / HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n';
/** Few enough that a slow machine answers all before the clients time out. */
const CONNECTIONS_AT_ONCE = 25;
/** A client half-closes an idle connection after this time, so that every connection ends. */
const SILENCE_MS = 50;
/** Long enough for a busy machine. */
const PATIENCE_MS = 60_000;
const DIALECTS = [...plainSettings.dialects.default, 'gce'] as const;
const LIMITS = { requestsPerSecond: 1e6, burst: 1e6, connections: 1000 };
/** With a smaller share, noise would end most connections early. */
const MIN_SHARE_OF_OK = 0.2;
/** A single input of the corpus has too few answers for the share. */
const MIN_ANSWERS = 1000;

/**
 * Checks the guests' HTTP server with pipelined requests. Every answer has a known status, and the
 * number of answers is at most that of the requests. Valid requests all get an answer.
 */
export function httpTarget(
  wrap: (handler: GuestHandler) => GuestHandler = (handler) => handler,
): Target {
  return {
    name: 'http',
    generate,
    open: () => HttpOracle.open(wrap),
    concurrency: CONNECTIONS_AT_ONCE,
    inputsPerCase: REQUESTS_PER_CONNECTION + 1,
  };
}

function generate(random: SeededRandom): Buffer {
  const requests = Array.from({ length: REQUESTS_PER_CONNECTION }, () =>
    generateRequest((limit) => random.below(limit)),
  );
  return Buffer.concat([...requests, Buffer.from(LAST)]);
}

class HttpOracle {
  readonly #server: Server;
  readonly #guests: GuestServer;
  readonly #port: number;
  readonly #failures: unknown[];
  #answers = 0;
  #ok = 0;

  private constructor(parts: {
    server: Server;
    guests: GuestServer;
    port: number;
    failures: unknown[];
  }) {
    this.#server = parts.server;
    this.#guests = parts.guests;
    this.#port = parts.port;
    this.#failures = parts.failures;
  }

  static async open(wrap: (handler: GuestHandler) => GuestHandler): Promise<HttpOracle> {
    const failures: unknown[] = [];
    const metrics: GuestMetrics = { finished: () => undefined, refused: () => undefined };
    const handler = new GuestHandler({
      events: new EventLog(0),
      serveStream: ({ response }) => sendText(response, 502, 'none'),

      serveIdentity: async () => undefined,
      serveCredentials: async () => undefined,

      serveRelay: ({ response }) => void response.writeHead(404).end(),
      metrics,
      audit: new Audit(
        { ...silentLogger, error: (...record: unknown[]) => failures.push(record) },
        systemClock,
      ),
      clock: systemClock,
    });
    const view = parseView(exampleView({ limits: LIMITS, dialects: [...DIALECTS] }));
    const guests = new GuestServer(wrap(handler), metrics);
    // Each connection has its own instance, so that a blocked instance does not affect other
    // connections.
    const server = createServer({ allowHalfOpen: true }, (socket) =>
      guests.accept(new Instance(view, systemClock), socket, true),
    );
    server.listen({ host: '127.0.0.1', port: 0, backlog: 1024 });
    await once(server, 'listening');
    // A TCP server's address is an object.
    const { port } = server.address() as AddressInfo;
    return new HttpOracle({ server, guests, port, failures });
  }

  async check(input: Buffer): Promise<void> {
    const isRight = input.toString('latin1').replaceAll(RIGHT_REQUEST, '') === LAST;
    const statuses = await this.#send(input, isRight);
    assert.deepEqual(this.#failures, [], 'the handler failed');
    for (const status of statuses) assert.ok(EXPECTED_STATUSES.has(status), `status ${status}`);
    const answers = statuses.filter((status) => status >= 200);
    const requests = input.toString('latin1').split('\r\n\r\n').length - 1;
    assert.ok(answers.length <= Math.max(1, requests), `${answers.length} answers`);
    if (isRight) assert.equal(answers.length, requests, 'a right request got no answer');
    this.#answers += answers.length;
    this.#ok += answers.filter((status) => status === 200).length;
  }

  /** @param isRight the server then ends the connection itself */
  async #send(input: Buffer, isRight: boolean): Promise<readonly number[]> {
    const socket = connect({ port: this.#port, host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    let isWaitedForInVain = false;
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    const patience = setTimeout(() => {
      isWaitedForInVain = true;
      socket.destroy();
    }, PATIENCE_MS);
    if (!isRight) socket.setTimeout(SILENCE_MS, () => socket.end());
    socket.on('end', () => socket.destroy());
    socket.write(input);
    await new Promise((resolve) => socket.on('close', resolve));
    clearTimeout(patience);
    assert.ok(!isWaitedForInVain, 'the connection has no end');
    // A status line may follow a body on the same line. No body contains this text.
    return Array.from(text.matchAll(/HTTP\/1\.1 (\d{3}) /g), (match) => Number(match[1]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#guests[Symbol.dispose]();
    assert.ok(
      this.#answers < MIN_ANSWERS || this.#ok >= this.#answers * MIN_SHARE_OF_OK,
      `${this.#ok} of ${this.#answers} answers are 200`,
    );
  }
}
