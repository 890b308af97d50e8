import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { MasterCheck } from './master-check.ts';

/** Interval of questions, shared by all callers; replicas report once a second. */
const ASK_MS = 250;
/** Limit of questions: data that no replica has by then may be lost. */
const MAX_ASKED = 40;

/** Replication state of a server. */
export interface Replication {
  readonly isMaster: boolean;
  readonly offset: number;
  /** The confirmed offset of each replica. */
  readonly copies: readonly number[];
}

/**
 * Checks whether data read from a master survives a failover. Until replicas have it, a failover
 * reverts it, and decisions based on it are void. Replicas of a deposed master lose it with their
 * master.
 */
export class ReplicaAcknowledgement {
  readonly #redis: Redis;
  readonly #replicas: number;
  readonly #masterCheck: Pick<MasterCheck, 'isSure'> | undefined;
  /** Number of the connection: a new one may lead to another server. */
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
   * Must be called before a read.
   * @returns a function for use after the read: whether enough replicas have the data and the
   * server is still the master; false also when that is unknown
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
        // The server does not answer: its data may be lost with it.
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
