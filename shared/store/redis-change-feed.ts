import type { Redis } from 'ioredis';
import type { Logger } from '../log/log.ts';
import { createRedis } from './redis-connection.ts';
import type { RedisServer } from './store-url.ts';

/**
 * Tells who watches a channel of what is published there, over a connection of its own that is made
 * for the first of them.
 */
export class ChangeFeed {
  readonly #server: RedisServer;
  readonly #logger: Logger;
  readonly #watchers = new Map<string, Set<() => void>>();
  #redis: Redis | undefined;

  constructor(server: RedisServer, logger: Logger) {
    this.#server = server;
    this.#logger = logger;
  }

  /**
   * Calls back once it listens, then after each publication, and after each time without a
   * connection.
   * @returns ends it
   */
  watch(channel: string, onChange: () => void): () => void {
    const watchers = this.#watchers.get(channel) ?? new Set();
    this.#watchers.set(channel, watchers);
    watchers.add(onChange);
    this.#redis ??= this.#connect();
    if (this.#redis.status === 'ready') this.#subscribe(this.#redis);
    return () => watchers.delete(onChange);
  }

  close(): void {
    this.#redis?.disconnect();
  }

  #connect(): Redis {
    const redis = createRedis(this.#server, { lazyConnect: false, autoResubscribe: false });
    redis.on('error', (error: Error) =>
      this.#logger.debug('store.feed-error', { reason: error.message }),
    );
    redis.on('message', (channel: string) => this.#tell(channel));
    redis.on('ready', () => this.#subscribe(redis));
    return redis;
  }

  #subscribe(redis: Redis): void {
    const channels = [...this.#watchers.keys()];
    redis.subscribe(...channels).then(
      () => channels.forEach((channel) => this.#tell(channel)),
      () => undefined, // the next connection subscribes
    );
  }

  #tell(channel: string): void {
    for (const onChange of this.#watchers.get(channel) ?? []) onChange();
  }
}
