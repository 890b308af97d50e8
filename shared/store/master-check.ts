import { Redis } from 'ioredis';
import type { Replication } from './replica-acknowledgement.ts';
import type { RedisServer } from './store-url.ts';

const ANSWER_MS = 1500;
/** What a Sentinel adds to `master` where it doubts, or is about to change it. */
const IN_DOUBT = /s_down|o_down|failover_in_progress|disconnected/;

type Watched = Extract<RedisServer, { sentinels: unknown }>;

/**
 * Whether the server that took a write, or was read, is its Sentinels' master still. One that stood
 * still while they made another one goes on as before when it wakes: those of its replicas that
 * were not told yet confirm what it is given, and lose it when they are. The one that was promoted
 * has left it by then, so whoever finds a replica less, or has a connection anew, asks the
 * Sentinels.
 */
export class MasterCheck {
  readonly #server: Watched;
  readonly #asked: Redis;
  #connection = 0;
  /** The connection for which Sentinels were asked last, and the replicas that it had since. */
  #known: { readonly connection: number; copies: number } | undefined;
  /** The last question to Sentinels: they are asked one after the other. */
  #last: Promise<unknown> = Promise.resolve();
  /** The one that is not asked yet: whoever waits by then shares its answer. */
  #next: Promise<boolean> | undefined;

  /** @param asked the connection whose server is meant: each has its own masterCheck */
  constructor(server: Watched, asked: Redis) {
    this.#server = server;
    this.#asked = asked;
    asked.on('ready', () => void (this.#connection += 1));
  }

  /** @param told what the server said on this connection, after replicas had what is in question */
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

  /** What was answered before replicas had a write says nothing of that. */
  #confirm(): Promise<boolean> {
    this.#next ??= this.#last.then(() => {
      this.#next = undefined;
      return this.#isConfirmed();
    });
    this.#last = this.#next;
    return this.#next;
  }

  /**
   * Whether most of the Sentinels that the URL names confirm it, and none of them doubts it. One
   * that is about to fail over counts before it is elected, too: others vote for it without a look
   * of their own, and it chooses a replica by offsets that are seconds old, so that what another
   * one has is lost.
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
 * How many Sentinels there are, by what those say that the URL names; as many as it names when none
 * answers.
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

/** What a Sentinel says; undefined when it does not answer, or knows no such master. */
async function askSentinel(
  { host, port }: { readonly host: string; readonly port: number },
  name: string,
): Promise<Told | undefined> {
  const client = new Redis({
    ...{ host, port, lazyConnect: true, disableClientInfo: true },
    ...{ connectTimeout: ANSWER_MS, commandTimeout: ANSWER_MS, retryStrategy: () => null },
  });
  // What it fails with is told by the command.
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
