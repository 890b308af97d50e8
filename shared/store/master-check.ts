import { Redis } from 'ioredis';
import type { Replication } from './replica-acknowledgement.ts';
import type { RedisServer } from './store-url.ts';

const ANSWER_MS = 1500;
/** Flags of `master` when a Sentinel doubts the master or is about to change it. */
const IN_DOUBT = /s_down|o_down|failover_in_progress|disconnected/;

type Watched = Extract<RedisServer, { sentinels: unknown }>;

/**
 * Checks that the server of a write or read is still its Sentinels' master. A master that was
 * frozen during a failover continues on waking: replicas that were not reconfigured yet confirm its
 * writes, and lose them later. The promoted replica has left it by then. So a lost replica or a new
 * connection triggers a question to the Sentinels.
 */
export class MasterCheck {
  readonly #server: Watched;
  readonly #asked: Redis;
  #connection = 0;
  /** The connection of the last confirmed check, and its number of replicas since. */
  #known: { readonly connection: number; copies: number } | undefined;
  /** The last question to the Sentinels; questions are serial. */
  #last: Promise<unknown> = Promise.resolve();
  /** The next question, whose answer all waiting callers share. */
  #next: Promise<boolean> | undefined;

  /** @param asked the connection to check; each connection has its own check */
  constructor(server: Watched, asked: Redis) {
    this.#server = server;
    this.#asked = asked;
    asked.on('ready', () => void (this.#connection += 1));
  }

  /**
   * @param told replication state from this connection, requested after replicas confirmed the
   * write or read
   */
  async isSure(told: Replication): Promise<boolean> {
    if (!told.isMaster) return false;
    const copies = told.copies.length;
    const connection = this.#connection;
    const known = this.#known;
    if (known?.connection === connection && copies >= known.copies) {
      known.copies = copies;
      return true;
    }
    if (!(await this.#confirm()) || connection !== this.#connection) return false;
    this.#known = { connection, copies };
    return true;
  }

  /** Asks the Sentinels; an answer from before the replicas' confirmation does not count. */
  #confirm(): Promise<boolean> {
    this.#next ??= this.#last.then(() => {
      this.#next = undefined;
      return this.#isConfirmed();
    });
    this.#last = this.#next;
    return this.#next;
  }

  /**
   * Returns whether a majority of the Sentinels in the URL confirm the master, and none doubts it.
   * A Sentinel that is about to fail over counts even before its election: others vote for it
   * without a check of their own. It chooses a replica by offsets that are seconds old, so that
   * newer writes on another replica are lost.
   */
  async #isConfirmed(): Promise<boolean> {
    const { sentinels, name } = this.#server;
    const [own, ...told] = await Promise.all([
      this.#asked.info('server').catch(() => ''),
      ...sentinels.map((sentinel) => askSentinel(sentinel, name)),
    ]);
    const runId = /^run_id:(\w+)/m.exec(own)?.[1];
    const known = told.filter((one) => one !== undefined);
    if (known.some(({ flags }) => /o_down|failover_in_progress/.test(flags))) return false;
    const agreeing = known.filter((one) => one.runId === runId && !IN_DOUBT.test(one.flags));
    return runId !== undefined && agreeing.length * 2 > sentinels.length;
  }
}

/**
 * Returns the number of Sentinels, as those in the URL report it; at least the number in the URL.
 */
export async function countSentinels({ sentinels, name }: Watched): Promise<number> {
  const told = await Promise.all(sentinels.map((sentinel) => askSentinel(sentinel, name)));
  return Math.max(sentinels.length, ...told.map((one) => (one?.others ?? 0) + 1));
}

interface Told {
  readonly runId: string;
  readonly flags: string;
  /** Sentinels that watch the same master. */
  readonly others: number;
}

/** Returns a Sentinel's answer; undefined when it does not answer, or does not know the master. */
async function askSentinel(
  { host, port }: { readonly host: string; readonly port: number },
  name: string,
): Promise<Told | undefined> {
  const client = new Redis({
    host,
    port,
    lazyConnect: true,
    disableClientInfo: true,
    connectTimeout: ANSWER_MS,
    commandTimeout: ANSWER_MS,
    retryStrategy: () => null,
  });
  // The command reports the failure.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const words: unknown = await client.call('SENTINEL', 'MASTER', name);
    if (!Array.isArray(words)) return undefined;
    const valueOf = (field: string): string => String(words[words.indexOf(field) + 1] ?? '');
    const others = Number(valueOf('num-other-sentinels'));
    return { runId: valueOf('runid'), flags: valueOf('flags'), others };
  } catch {
    return undefined;
  } finally {
    client.disconnect();
  }
}
