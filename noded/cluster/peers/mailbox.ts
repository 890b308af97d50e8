import type { Redis } from 'ioredis';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { createRedis } from '#shared/store/redis-connection.ts';
import type { RedisServer } from '#shared/store/store-url.ts';

/**
 * As long as the store's own timeout. A server without power sends nothing, and the kernel retries
 * for a quarter of an hour.
 */
const SEND_TIMEOUT_MS = 10_000;

export interface MailboxOptions {
  readonly server: RedisServer;
  /** Node whose messages are received. */
  readonly node: string;
  readonly onMessage: (bytes: Buffer) => void;
  /** Called when a connection to Redis ended, so that messages may be lost. */
  readonly onLost: () => void;
  readonly logger: Logger;
}

/**
 * Sends messages between nodes by Redis publish and subscribe, which stores nothing: an absent node
 * misses them.
 */
export class Mailbox implements AsyncDisposable {
  readonly #options: MailboxOptions;
  readonly #publisher: Redis;
  readonly #subscriber: Redis;

  private constructor(options: MailboxOptions) {
    this.#options = options;
    // A message must not be sent later than now.
    const now = { enableOfflineQueue: false, maxRetriesPerRequest: 0 };
    const inTime = { commandTimeout: SEND_TIMEOUT_MS };
    this.#publisher = createRedis(options.server, { ...now, ...inTime });
    this.#subscriber = createRedis(options.server, { autoResubscribe: false });
  }

  /** @throws AppError STORE_UNAVAILABLE */
  static async open(options: MailboxOptions): Promise<Mailbox> {
    const mailbox = new Mailbox(options);
    try {
      await mailbox.#open();
      return mailbox;
    } catch (error) {
      await mailbox[Symbol.asyncDispose]();
      throw unavailable(error);
    }
  }

  async #open(): Promise<void> {
    const { node, onMessage, onLost, logger } = this.#options;
    for (const redis of [this.#publisher, this.#subscriber]) {
      redis.on('error', (error: Error) =>
        logger.debug('peers.redis-error', { reason: error.message }),
      );
      redis.on('close', onLost);
      await redis.connect();
    }
    this.#subscriber.on('messageBuffer', (_channel: Buffer, bytes: Buffer) => onMessage(bytes));
    await this.#subscriber.subscribe(channelOf(node));
    this.#subscriber.on('ready', () => {
      // The next connection subscribes.
      this.#subscriber.subscribe(channelOf(node)).catch(() => undefined);
    });
  }

  /** Returns the address of this host on its way to Redis; undefined for a unix socket. */
  localAddress(): string | undefined {
    const { stream } = this.#publisher;
    return 'localAddress' in stream ? stream.localAddress : undefined;
  }

  /**
   * @returns the number of receivers: 0 when no daemon of that node runs
   * @throws AppError STORE_UNAVAILABLE
   */
  async send(node: string, bytes: Buffer): Promise<number> {
    try {
      return await this.#publisher.publish(channelOf(node), bytes);
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** Counts receivers of this node's messages. More than one means a twin. */
  async countOwners(): Promise<number> {
    const answer = await this.#publisher.pubsub('NUMSUB', channelOf(this.#options.node));
    return Number(answer[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscriber.disconnect();
    // Earlier messages go out first.
    await this.#publisher.quit().catch(() => undefined);
    this.#publisher.disconnect();
  }
}

function channelOf(node: string): string {
  return `{gnt}:node:${node}`;
}

function unavailable(error: unknown): AppError {
  return new AppError('STORE_UNAVAILABLE', `the store does not answer: ${messageOf(error)}`, {
    hint: 'Check that Redis runs, then try again.',
    cause: error,
  });
}
