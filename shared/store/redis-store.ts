import type { Redis } from 'ioredis';
import { AppError, isAppError, messageOf } from '../errors/app-error.ts';
import type { Logger } from '../log/log.ts';
import {
  checkCollection,
  checkKey,
  compareIds,
  decodeListed,
  decodeValue,
  type EncodedWrite,
  encodeWrites,
  newerStore,
  STORE_SCHEMA,
} from './encode.ts';
import { StampBehind, StoreConflict } from './store-conflict.ts';
import { COMMIT_SCRIPT } from './redis-commit-script.ts';
import { findRedisRisks, type StoreRisk } from './redis-risks.ts';
import { ChangeFeed, EMPTY } from './redis-change-feed.ts';
import { BrokenKey, namingKey } from './redis-broken-key.ts';
import { createRedis } from './redis-connection.ts';
import { countSentinels, MasterCheck } from './master-check.ts';
import { parseReplication, ReplicaAcknowledgement } from './replica-acknowledgement.ts';
import { describeStoreUrl, type RedisServer } from './store-url.ts';
import { unreadable } from './readable-records.ts';
import type { ListedRecord, Store, StoredRecord } from './store.ts';

export interface RedisStoreOptions {
  readonly server: RedisServer;
  /**
   * Prefix of all keys. The braces make Redis Cluster keep them in one slot, as a script requires.
   */
  readonly prefix?: string;
  readonly logger: Logger;
}

/** The version of the layout of keys and values in Redis. */
const LAYOUT = 1;
/** Raises the number of KEYS[1] to at least ARGV[1], and returns it. */
const RAISE_SCRIPT = `
local held = tonumber(redis.call('GET', KEYS[1]) or '0')
if held and held < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return redis.call('GET', KEYS[1])`;
/** Keys that the server examines in one step. */
const SCAN_COUNT = 1000;
/** Records of a slice: a few milliseconds of opening and reading. */
const SLICE = 32;
const COMMAND_TIMEOUT_MS = 10_000;
/** Time for replicas to confirm a write, less than the above: a slower replica does not count. */
const REPLICAS_TIMEOUT_MS = 2000;
/** Attempts to reconnect, a tenth of a second and more apart, before a request fails. */
const MAX_RECONNECTS = 3;

/**
 * Opens the engine for clusters. A collection is one hash; a field holds `<revision>\n<JSON>`. A
 * commit is one script on the server. It counts once the number of replicas in the URL have it, so
 * that a failover to one of them loses no acknowledged write.
 * @throws AppError STORE_VERSION when a newer program wrote it, HOST_PREREQUISITE when no server
 * answers
 */
export async function createRedisStore(options: RedisStoreOptions): Promise<Store> {
  const redis = createClient(options);
  // A wait for replicas blocks later commands of its connection.
  const writer = options.server.replicas === undefined ? redis : createClient(options);
  // A failed connection is reported as closed; this error has the reason: a certificate, a name, a
  // port.
  let reason: Error | undefined;
  for (const client of [redis, writer]) client.on('error', (error: Error) => (reason = error));
  try {
    await redis.connect();
    await claimSchema(redis, options);
    if (writer !== redis) await writer.connect();
    return createStore(redis, writer, options);
  } catch (error) {
    redis.disconnect();
    writer.disconnect();
    if (error instanceof AppError) throw error;
    throw new AppError(
      'HOST_PREREQUISITE',
      `cannot use the store ${describe(options)}: ${messageOf(isClosed(error) ? (reason ?? error) : error)}`,
      { cause: error, hint: 'Start Redis, or correct --store' },
    );
  }
}

/** ioredis reports every failed connection with this message. */
function isClosed(error: unknown): boolean {
  return error instanceof Error && error.message === 'Connection is closed.';
}

function createClient({ server, logger }: RedisStoreOptions): Redis {
  const redis = createRedis(server, {
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: MAX_RECONNECTS,
  });
  redis.on('error', (error: Error) => logger.warn('store.redis-error', { reason: error.message }));
  return redis;
}

function describe({ server }: RedisStoreOptions): string {
  return 'name' in server ? `sentinel:${server.name}` : describeStoreUrl(server.url);
}

function keyOf(options: RedisStoreOptions, suffix: string): string {
  return `${options.prefix ?? '{gnt}'}:${suffix}`;
}

/**
 * Claims two versions. A different layout stops all commits, also of running nodes. A newer version
 * of records keeps earlier releases from starting; running ones continue until their upgrade.
 */
async function claimSchema(redis: Redis, options: RedisStoreOptions): Promise<void> {
  const layoutKey = keyOf(options, 'schema');
  await redis.set(layoutKey, String(LAYOUT), 'NX');
  const refuseNewer = (version: string, known: number): void => {
    if (!/^\d+$/.test(version) || Number(version) > known)
      throw newerStore(describe(options), version);
  };
  refuseNewer((await namingKey(layoutKey, redis.get(layoutKey))) ?? '', LAYOUT);
  const recordsKey = keyOf(options, 'records');
  const held = await namingKey(recordsKey, redis.eval(RAISE_SCRIPT, 1, recordsKey, STORE_SCHEMA));
  refuseNewer(String(held), STORE_SCHEMA);
}

function escapeGlob(text: string): string {
  return text.replaceAll(/[\\*?[\]]/g, (found) => `\\${found}`);
}

/** Digits that a number holds exactly; no record is written more often. */
const FIELD_HEAD = /^([1-9]\d{0,14})\n/;

/** @throws AppError RECORD_UNREADABLE */
function parseField(collection: string, id: string, text: string): StoredRecord {
  const [head, revision] = FIELD_HEAD.exec(text.slice(0, 32)) ?? [];
  if (head === undefined) throw unreadable(collection, id, 'it has no revision');
  const value = decodeValue(collection, id, text.slice(head.length));
  return { id, revision: Number(revision), value };
}

function decodeField(collection: string, id: string, text: string): ListedRecord {
  const revision = Number(FIELD_HEAD.exec(text.slice(0, 32))?.[1] ?? 0);
  return decodeListed({ id, revision }, () => parseField(collection, id, text).value);
}

function createStore(redis: Redis, writer: Redis, options: RedisStoreOptions): Store {
  const collectionKey = (collection: string): string => keyOf(options, `c:${collection}`);
  /** Not in the name space of collections, which are found by a scan. */
  const logKey = (collection: string): string => keyOf(options, `l:${collection}`);
  const floorKey = (collection: string): string => keyOf(options, `f:${collection}`);
  const changes = new ChangeFeed(options.server, options.logger);
  let connections = 0;
  redis.on('ready', () => void (connections += 1));
  const { replicas } = options.server;
  const watched =
    replicas !== undefined && 'sentinels' in options.server ? options.server : undefined;
  const masterCheck = watched && new MasterCheck(watched, writer);
  const acknowledgement =
    replicas === undefined
      ? undefined
      : new ReplicaAcknowledgement(redis, replicas, watched && new MasterCheck(watched, redis));
  /**
   * Yields the steps of a scan. A cursor is valid only in the process that issued it: in a
   * restarted or promoted server it skips records.
   */
  const steps = async function* <T>(
    step: (cursor: string) => Promise<readonly [string, T]>,
    key?: string,
  ): AsyncGenerator<T> {
    let begunIn: number | undefined;
    let cursor = '0';
    do {
      const [next, found] = await answered(step(cursor), key);
      begunIn ??= connections;
      if (begunIn !== connections)
        throw unavailable(new Error('the connection was lost during a scan'), options);
      yield found;
      cursor = next;
    } while (cursor !== '0');
  };
  const answered = async <T>(asking: Promise<T>, key?: string): Promise<T> => {
    try {
      return await (key === undefined ? asking : namingKey(key, asking));
    } catch (error) {
      throw isAppError(error) || error instanceof StampBehind ? error : unavailable(error, options);
    }
  };
  return {
    async get(collection, id) {
      checkKey(collection, id);
      const key = collectionKey(collection);
      const text = await answered(redis.hget(key, id), key);
      return text === null ? undefined : parseField(collection, id, text);
    },
    async getSome(collection, ids) {
      for (const id of ids) checkKey(collection, id);
      if (ids.length === 0) return [];
      const key = collectionKey(collection);
      const texts = await answered(redis.hmget(key, ...ids), key);
      return ids.flatMap((id, index) => {
        const text = texts[index] ?? null;
        return text === null ? [] : decodeField(collection, id, text);
      });
    },
    async list(collection) {
      checkCollection(collection);
      const key = collectionKey(collection);
      const fields = await answered(redis.hgetall(key), key);
      return Object.entries(fields)
        .map(([id, text]) => decodeField(collection, id, text))
        .sort((a, b) => compareIds(a.id, b.id));
    },
    async *scan(collection) {
      checkCollection(collection);
      const key = collectionKey(collection);
      const step = (cursor: string) => redis.hscan(key, cursor, 'COUNT', SLICE);
      for await (const fields of steps(step, key)) {
        const slice: ListedRecord[] = [];
        for (let at = 0; at + 1 < fields.length; at += 2)
          slice.push(decodeField(collection, fields[at] ?? '', fields[at + 1] ?? ''));
        yield slice;
      }
    },
    async ids(collection) {
      checkCollection(collection);
      const key = collectionKey(collection);
      return answered(redis.hkeys(key), key);
    },
    async collections() {
      const prefix = collectionKey('');
      const found = new Set<string>();
      const match = `${escapeGlob(prefix)}*`;
      for await (const keys of steps((cursor) =>
        redis.scan(cursor, 'MATCH', match, 'COUNT', SCAN_COUNT),
      ))
        for (const key of keys) found.add(key.slice(prefix.length));
      return [...found].sort();
    },
    ...(acknowledgement && { acknowledgement: () => acknowledgement.take() }),
    risks: () => answered(askRisks(redis, options.server)),
    async commit(writes) {
      const encoded = encodeWrites(writes);
      const keys = [
        keyOf(options, 'schema'),
        ...encoded.flatMap(({ collection }) => [
          collectionKey(collection),
          logKey(collection),
          floorKey(collection),
        ]),
      ];
      const args = encoded.flatMap((write) => [
        write.id,
        String(write.expected),
        write.json === null ? '0' : '1',
        write.json ?? '',
        String(write.stamp),
      ]);
      return answered(commitOnServer(keys, args, encoded));
    },
    watch: (collection, onChanges) => {
      checkCollection(collection);
      const log = logKey(collection);
      const end = changes.watch(log, onChanges);
      const caughtUp = async (): Promise<void> => {
        const [last] = await redis.xrevrange(log, '+', '-', 'COUNT', 1);
        await changes.told(log, last?.[0] ?? EMPTY);
      };
      return { caughtUp: () => answered(caughtUp(), log), end };
    },
    async close() {
      changes.close();
      for (const client of new Set([redis, writer])) {
        if (client.status !== 'end') await client.quit().catch(() => undefined);
        // The client has its own connections to Sentinels.
        client.disconnect();
      }
    },
  };

  async function commitOnServer(
    keys: readonly string[],
    args: readonly string[],
    encoded: readonly EncodedWrite[],
  ): Promise<readonly number[]> {
    const { replicas } = options.server;
    const words = [COMMIT_SCRIPT, keys.length, ...keys, LAYOUT, ...args] as const;
    if (replicas === undefined) return parseAnswer(await writer.eval(...words), encoded, options);
    // One connection for all: WAIT counts replicas for the writes of its connection.
    const asked = writer
      .pipeline()
      .eval(...words)
      .wait(replicas, REPLICAS_TIMEOUT_MS);
    if (masterCheck) asked.info('replication');
    const [written, confirmed, told] = (await asked.exec()) ?? [];
    const answer = valueOf(written);
    const copies = valueOf(confirmed);
    if (Number(copies) < replicas) {
      throw unavailable(
        new Error(`only ${String(copies)} of ${replicas} replicas confirmed the write`),
        options,
      );
    }
    // A server that forbids INFO is trusted, like one without Sentinels.
    const isForbidden = /^NOPERM/.test(told?.[0]?.message ?? '');
    if (
      masterCheck &&
      !isForbidden &&
      !(await masterCheck.isSure(parseReplication(String(valueOf(told)))))
    ) {
      throw unavailable(
        new Error(
          'its Sentinels do not confirm that it is the master, so a failover may be under way',
        ),
        options,
      );
    }
    return parseAnswer(answer, encoded, options);
  }
}

async function askRisks(redis: Redis, server: RedisServer): Promise<readonly StoreRisk[]> {
  const info = await redis.info();
  const [appendFsync, outputLimits] = await Promise.all([
    askSetting(redis, 'appendfsync'),
    askSetting(redis, 'client-output-buffer-limit'),
  ]);
  return findRedisRisks({
    info,
    appendFsync,
    outputLimits,
    replicas: server.replicas ?? 0,
    sentinels:
      'sentinels' in server
        ? { named: server.sentinels.length, all: await countSentinels(server) }
        : null,
  });
}

/** @returns null when the server forbids CONFIG */
async function askSetting(redis: Redis, name: string): Promise<string | null> {
  // A pair of name and value.
  const told = await redis.config('GET', name).catch(() => null);
  const value = Array.isArray(told) ? (told as unknown[])[1] : null;
  return typeof value === 'string' ? value : null;
}

/** @throws the server's error */
function valueOf([error, value]: readonly [Error | null, unknown] = [null, undefined]): unknown {
  if (error !== null) throw error;
  return value;
}

function unavailable(error: unknown, options: RedisStoreOptions): AppError {
  const isLost = error instanceof Error && error.name === 'MaxRetriesPerRequestError';
  const reason = isLost ? 'the connection was lost' : messageOf(error);
  return new AppError(
    'STORE_UNAVAILABLE',
    `the store ${describe(options)} does not answer: ${reason}`,
    {
      cause: error,
      hint: 'Check that Redis runs. The operation may have been done: check the result before you repeat it.',
    },
  );
}

function parseAnswer(
  answer: unknown,
  encoded: readonly { readonly collection: string; readonly id: string }[],
  options: RedisStoreOptions,
): readonly number[] {
  if (!Array.isArray(answer)) throw new Error('the commit script returned no list');
  // Array.isArray widens to any[].
  const [kind, ...rest] = answer as unknown[];
  if (kind === 'done') return rest.map(Number);
  if (kind === 'schema') throw newerStore(describe(options), String(rest[0]));
  if (kind === 'broken') throw new BrokenKey(String(rest[0]));
  const write = encoded[Number(rest[0]) - 1];
  if (kind === 'behind' && write) throw new StampBehind(write.collection, Number(rest[1]));
  if (kind !== 'conflict' || !write) throw new Error(`the commit script returned ${String(kind)}`);
  throw new StoreConflict(write.collection, write.id);
}
