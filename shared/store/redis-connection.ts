import { Redis, type RedisOptions } from 'ioredis';
import { type RedisServer, socketPathOf } from './store-url.ts';

const CONNECT_TIMEOUT_MS = 5000;
const MAX_RETRY_DELAY_MS = 500;

/** Time until a connection that was given up begins anew. */
const REVIVE_MS = 100;

type Options = Pick<
  RedisOptions,
  | 'lazyConnect'
  | 'commandTimeout'
  | 'maxRetriesPerRequest'
  | 'autoResubscribe'
  | 'enableOfflineQueue'
>;

/**
 * A client of a Redis that connects when it is told, and again by itself whenever the connection is
 * lost.
 */
export function createRedis(server: RedisServer, options: Options): Redis {
  const common = {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // What was sent and not answered may have happened: sending it again would be a second one.
    autoResendUnfulfilledCommands: false,
    // What the client is called is nothing that a server has to let everybody set.
    disableClientInfo: true,
    retryStrategy: (attempt: number) => Math.min(attempt * 100, MAX_RETRY_DELAY_MS),
    // In the error of a script, the word is in the middle of the message.
    reconnectOnError: (error: Error) => /\bREADONLY\b/.test(error.message),
    ...options,
  } satisfies RedisOptions;
  const login = {
    ...(server.username !== undefined && { username: server.username }),
    ...(server.password !== undefined && { password: server.password }),
  };
  if ('url' in server) {
    return server.url.startsWith('unix:')
      ? new Redis({ ...common, ...login, path: socketPathOf(server.url) })
      : new Redis(server.url, common);
  }
  return new LastingRedis({
    ...common,
    sentinels: server.sentinels.map(({ host, port }) => ({ host, port })),
    name: server.name,
    ...login,
    // Without this a client goes on writing to a deposed master for seconds.
    failoverDetector: true,
  });
}

/**
 * A client that is told of a new master while it asks Sentinels for one gives up for good, whatever
 * its `retryStrategy` says: this one ends when it is told to, by `disconnect`.
 */
class LastingRedis extends Redis {
  #isOver = false;

  constructor(options: RedisOptions & { replyMapping?: 'legacy' }) {
    super(options);
    this.on('end', () => {
      setTimeout(() => {
        // What it fails with is told as an error, and the next end begins anew.
        if (!this.#isOver && this.status === 'end') this.connect().catch(() => undefined);
      }, REVIVE_MS).unref();
    });
  }

  override disconnect(reconnect = false): void {
    this.#isOver ||= !reconnect;
    super.disconnect(reconnect);
  }
}
