import { AppError, isAppError, messageOf } from '../errors/app-error.ts';
import type { Redis } from 'ioredis';
import { namingKey } from './redis-broken-key.ts';
import { createRedis } from './redis-connection.ts';
import { describeStoreUrl, parseStoreUrl } from './store-url.ts';

/**
 * Sealed keys of join tokens in a store. They are not records: a joining node has no key of the
 * cluster yet.
 */
export interface Joins extends AsyncDisposable {
  /** Returns the store's clock: milliseconds since the epoch. */
  now(): Promise<number>;
  put(id: string, sealed: Uint8Array, lifetimeMs: number): Promise<void>;
  /** Returns the sealed key; undefined when it was taken or has expired. */
  look(id: string): Promise<Uint8Array | undefined>;
  /** @returns whether it was there: true for one caller only */
  take(id: string): Promise<boolean>;
}

const COMMAND_TIMEOUT_MS = 5000;
const REPLICAS_TIMEOUT_MS = 2000;
/** A key, its nonce and its tag take a hundred. */
const MAX_SEALED_CHARACTERS = 1024;
/** A name that no record has. */
const keyOf = (id: string): string => `{gnt}:join:${id}`;

/** @throws AppError HOST_PREREQUISITE when the store does not answer */
export async function openJoins(url: string): Promise<Joins> {
  const server = parseStoreUrl(url);
  const redis = createRedis(server, {
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 1,
  });
  // Every command reports its own failure.
  redis.on('error', () => undefined);
  const answered = async <T>(asking: Promise<T>): Promise<T> => {
    try {
      return await asking;
    } catch (error) {
      if (isAppError(error)) throw error;
      redis.disconnect();
      throw new AppError(
        'HOST_PREREQUISITE',
        `cannot use the store ${describeStoreUrl(url)} from this host: ${messageOf(error)}`,
        { hint: 'Check that the store runs and that this host can reach it.', cause: error },
      );
    }
  };
  await answered(redis.connect());
  return {
    now: async () => {
      const [seconds, microseconds] = await answered(redis.time());
      return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
    },
    put: async (id, sealed, lifetimeMs) => {
      const text = Buffer.from(sealed).toString('base64');
      await answered(redis.set(keyOf(id), text, 'PX', lifetimeMs, 'NX'));
    },
    look: async (id) => {
      // Bounded, since any program that can write to the store decides the length.
      const asking = redis.getrange(keyOf(id), 0, MAX_SEALED_CHARACTERS);
      const text = await answered(namingKey(keyOf(id), asking));
      return text === '' ? undefined : Buffer.from(text, 'base64');
    },
    take: async (id) => {
      const taken = await answered(redis.del(keyOf(id)));
      await answered(waitForReplicas(redis, server.replicas));
      return taken === 1;
    },
    [Symbol.asyncDispose]: async () => {
      if (redis.status !== 'end') await redis.quit().catch(() => undefined);
      redis.disconnect();
    },
  };
}

/** A failover must not restore a token that was taken. */
async function waitForReplicas(redis: Redis, replicas: number | undefined): Promise<void> {
  if (replicas === undefined) return;
  const copies = await redis.wait(replicas, REPLICAS_TIMEOUT_MS);
  if (copies >= replicas) return;
  throw new Error(`only ${copies} of ${replicas} replicas recorded that the token was used`);
}
