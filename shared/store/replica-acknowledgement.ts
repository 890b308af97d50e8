import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { MasterCheck } from './master-check.ts';

/** Whoever wants to know meanwhile is told by the same question; replicas tell once a second. */
const ASK_MS = 250;
/** Questions at most: what replicas do not have by then may be kept by nobody. */
const MAX_ASKED = 40;

/** What a server says of its replication. */
export interface Replication {
  readonly isMaster: boolean;
  /** The offset of what it wrote until now. */
  readonly offset: number;
  /** What each replica said that it has. */
  readonly copies: readonly number[];
}

/**
 * Whether what was read of a master outlasts a failover: until replicas have it, too, a failover
 * takes it back, and whoever has built on it is left with what never was. Replicas of a master that
 * was deposed lose it with theirs.
 */
export class ReplicaAcknowledgement {
  readonly #redis: Redis;
  readonly #replicas: number;
  readonly #masterCheck: Pick<MasterCheck, 'isSure'> | undefined;
  /** The number of the connection: another one may be to another server. */
  #connection = 0;
  #asking: Promise<Replication> | undefined;

  /** @param masterCheck of the same connection; undefined without Sentinels */
  constructor(
    redis: Redis,
    replicas: number,
    masterCheck: Pick<MasterCheck, 'isSure'> | undefined,
  ) {
    this.#redis = redis;
    this.#replicas = replicas;
    this.#masterCheck = masterCheck;
    redis.on('ready', () => void (this.#connection += 1));
  }

  /**
   * Has to be called before something is read.
   * @returns asked after it was: whether as many replicas as it takes have it, and it is the master
   * still; false as well when nobody can tell any more
   */
  take(): () => Promise<boolean> {
    const connection = this.#connection;
    const isSame = ({ isMaster }: Replication): boolean =>
      isMaster && connection === this.#connection;
    return async () => {
      try {
        const read = await this.#ask();
        for (let told = read, asked = 1; isSame(told) && asked < MAX_ASKED; asked += 1) {
          if (told.copies.filter((copy) => copy >= read.offset).length >= this.#replicas)
            return this.#masterCheck === undefined || (await this.#masterCheck.isSure(told));
          told = await this.#ask();
        }
        return false;
      } catch {
        // It does not answer: what it had may be lost with it.
        return false;
      }
    };
  }

  #ask(): Promise<Replication> {
    this.#asking ??= sleep(ASK_MS, undefined, { ref: false }).then(async () => {
      this.#asking = undefined;
      return parseReplication(await this.#redis.info('replication'));
    });
    return this.#asking;
  }
}

export function parseReplication(info: string): Replication {
  return {
    isMaster: /^role:master\r?$/m.test(info),
    offset: Number(/^master_repl_offset:(\d+)/m.exec(info)?.[1] ?? Number.NaN),
    copies: [...info.matchAll(/^slave\d+:.*\bstate=online\b.*\boffset=(\d+)/gm)].map(([, offset]) =>
      Number(offset),
    ),
  };
}
