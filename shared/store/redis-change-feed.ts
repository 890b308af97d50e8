import type { Redis } from 'ioredis';
import { messageOf } from '../errors/app-error.ts';
import type { Logger } from '../log/log.ts';
import { isWrongType } from './redis-broken-key.ts';
import { createRedis } from './redis-connection.ts';
import type { OnChanges } from './store.ts';
import type { RedisServer } from './store-url.ts';

/** Entries read at once, of each log. */
const COUNT = 1000;
/** Longest wait of a newly watched log for the present read of the other logs. */
const BLOCK_MS = 500;
/** A connection is replaced after this time without an answer. */
const SILENCE_MS = 10_000;
/** The position before the first entry of a log. */
export const EMPTY = '0-0';
/** The feed is a round trip behind, or its connection is lost. */
const TOLD_TIMEOUT_MS = 5000;

interface Log {
  readonly watchers: Set<OnChanges>;
  /** The last reported entry; null before the first read. */
  position: string | null;
  /** Whether the key holds another type. */
  isBroken?: boolean;
  /** Callers that wait for the report of an entry. */
  readonly waiting: Set<{ readonly entry: string; readonly done: () => void }>;
}

/**
 * Reports the ids of each watched log in order, over its own connection, which the first watcher
 * opens.
 *
 * INVARIANT: a log is continued from an entry only if that entry still exists. A server that lost
 * part of a log (failover, backup, trimmed log) lost the newest entries too: then anything may have
 * changed.
 */
export class ChangeFeed {
  readonly #server: RedisServer;
  readonly #logger: Logger;
  readonly #logs = new Map<string, Log>();
  #redis: Redis | undefined;
  #isClosed = false;

  constructor(server: RedisServer, logger: Logger) {
    this.#server = server;
    this.#logger = logger;
  }

  watch(key: string, onChanges: OnChanges): () => void {
    const log = this.#logs.get(key) ?? { watchers: new Set(), position: null, waiting: new Set() };
    this.#logs.set(key, log);
    log.watchers.add(onChanges);
    // A later watcher starts like the first: with everything.
    log.position = null;
    this.#redis ??= this.#connect();
    return () => {
      log.watchers.delete(onChanges);
      if (log.watchers.size === 0) this.#logs.delete(key);
    };
  }

  /** Resolves when an entry of a watched log was reported. @throws Error on timeout */
  async told(key: string, entry: string): Promise<void> {
    const log = this.#logs.get(key);
    if (log === undefined || isTold(log, entry)) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { entry, done: resolve };
    log.waiting.add(waiter);
    const timer = setTimeout(
      () => reject(new Error('it does not report changes')),
      TOLD_TIMEOUT_MS,
    );
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      log.waiting.delete(waiter);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#redis?.disconnect();
  }

  #connect(): Redis {
    const redis = createRedis(this.#server, {
      lazyConnect: false,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: SILENCE_MS,
    });
    redis.on('error', (error: Error) =>
      this.#logger.debug('store.feed-error', { reason: error.message }),
    );
    redis.on('ready', () => {
      this.#follow(redis).catch((error: unknown) => {
        if (this.#isClosed) return;
        this.#logger.debug('store.feed-error', { reason: messageOf(error) });
        // A silent server counts as disconnected; the client reconnects by itself.
        if (redis.status === 'ready') redis.disconnect(true);
      });
    });
    return redis;
  }

  async #follow(redis: Redis): Promise<void> {
    await this.#check(redis, true);
    while (!this.#isClosed) {
      await this.#read(redis);
      await this.#check(redis, false);
    }
  }

  /** Finds the positions for the next read. @param isAll also of logs that were read before */
  async #check(redis: Redis, isAll: boolean): Promise<void> {
    for (const [key, log] of [...this.#logs]) {
      if (log.position !== null && !isAll) continue;
      try {
        await find(redis, key, log);
        log.isBroken = false;
      } catch (error) {
        if (!isWrongType(error)) throw error;
        // Other logs are still read.
        if (!log.isBroken) this.#logger.error('store.key-broken', { key });
        log.isBroken = true;
        log.position = null;
      }
    }
  }

  async #read(redis: Redis): Promise<void> {
    const read = [...this.#logs].filter(([, { position }]) => position !== null);
    const keys = read.map(([key]) => key);
    const positions = read.map(([, { position }]) => position ?? EMPTY);
    const where = [...keys, ...positions];
    if (where.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, BLOCK_MS).unref());
      return;
    }
    const answer = await redis
      .xread('COUNT', COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', ...where)
      .catch((error: unknown) => {
        if (!isWrongType(error)) throw error;
        // The answer does not name the key.
        for (const key of keys) forgetPosition(this.#logs.get(key));
        return null;
      });
    for (const [key, entries] of answer ?? []) {
      const from = positions[keys.indexOf(key)] ?? EMPTY;
      // A trimmed log may have lost entries before they were read.
      const isCut = entries.length === COUNT && !(await isThere(redis, key, from));
      const log = this.#logs.get(key);
      const last = entries.at(-1);
      // A watcher that was added meanwhile starts with everything.
      if (log === undefined || last === undefined || log.position === null) continue;
      if (isCut) {
        log.position = null;
        continue;
      }
      log.position = last[0];
      // An entry has one field.
      tell(log, [...new Set(entries.flatMap(([, [, id]]) => id ?? []))]);
    }
  }
}

/** Finds the position for the next read of a log. */
async function find(redis: Redis, key: string, log: Log): Promise<void> {
  if (log.position !== null && (await isThere(redis, key, log.position))) {
    tell(log, []);
    return;
  }
  const [last] = await redis.xrevrange(key, '+', '-', 'COUNT', 1);
  log.position = last?.[0] ?? EMPTY;
  tell(log, null);
}

function forgetPosition(log: Log | undefined): void {
  if (log !== undefined) log.position = null;
}

async function isThere(redis: Redis, key: string, entry: string): Promise<boolean> {
  return (await redis.xrange(key, entry, entry)).length > 0;
}

function tell(log: Log, ids: readonly string[] | null): void {
  for (const onChanges of log.watchers) onChanges(ids);
  for (const { entry, done } of log.waiting) if (isTold(log, entry)) done();
}

function isTold({ position }: Log, entry: string): boolean {
  if (position === null) return false;
  // Milliseconds and a counter, both safe integers.
  const [ms = 0, nth = 0] = position.split('-').map(Number);
  const [entryMs = 0, entryNth = 0] = entry.split('-').map(Number);
  return ms > entryMs || (ms === entryMs && nth >= entryNth);
}
