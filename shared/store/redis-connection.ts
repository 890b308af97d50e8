import { Redis, type RedisOptions } from 'ioredis';
import { type RedisServer, socketPathOf } from './store-url.ts';

const CONNECT_TIMEOUT_MS = 5000;
const MAX_RETRY_DELAY_MS = 500;

/** Delay before a connection that was given up is opened again. */
const REVIVE_MS = 100;

type Options = Pick<
  RedisOptions,
  | 'lazyConnect'
  | 'commandTimeout'
  | 'maxRetriesPerRequest'
  | 'autoResubscribe'
  | 'enableOfflineQueue'
>;

/** Creates a client that connects on `connect()`, and reconnects by itself. */
export function createRedis(server: RedisServer, options: Options): Redis {
  const common = {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // An unanswered command may have been executed: sending it again would repeat it.
    autoResendUnfulfilledCommands: false,
    // A server's ACL need not permit the client's name.
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
    // Without this a client writes to a deposed master for seconds.
    failoverDetector: true,
  });
}

/**
 * ioredis gives up for good when a new master is announced during a question to Sentinels, whatever
 * `retryStrategy` says. This client ends only on `disconnect`.
 */
class LastingRedis extends Redis {
  #isOver = false;

  constructor(options: RedisOptions & { replyMapping?: 'legacy' }) {
    super(options);
    this.on('end', () => {
      setTimeout(() => {
        // A failure is emitted as an error, and the next `end` retries.
        if (!this.#isOver && this.status === 'end') this.connect().catch(() => undefined);
      }, REVIVE_MS).unref();
    });
  }

  override disconnect(reconnect = false): void {
    this.#isOver ||= !reconnect;
    super.disconnect(reconnect);
  }
}
