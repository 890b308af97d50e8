import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { until } from '#shared/abort/until.ts';
import type { WiredHost } from './wire.ts';

const NAME = 'gnt';
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const DOWN_AFTER_MS = 1500;
const SETTLED_MS = 60_000;
const SENTINEL_LOG = 'sentinel.log';
const LOG_TAIL_CHARACTERS = 2000;

/** A Redis and a Sentinel on each host. The first host's Redis is the initial master. */
export class StoreServers implements AsyncDisposable {
  readonly servers: readonly StoreServer[];
  readonly url: string;

  private constructor(servers: readonly StoreServer[]) {
    this.servers = servers;
    const sentinels = servers.map(({ host }) => `${host.address}:${SENTINEL_PORT}`);
    this.url = `sentinel://${sentinels.join(',')}/${NAME}?replicas=1`;
  }

  static async start(hosts: readonly WiredHost[], folder: string): Promise<StoreServers> {
    const [first = { address: '' }] = hosts;
    const servers = hosts.map(
      (host, index) => new StoreServer(host, join(folder, `store-${index + 1}`)),
    );
    for (const server of servers) await server.prepare(first.address);
    for (const server of servers) server.startRedis();
    const stores = new StoreServers(servers);
    // A Sentinel asks for the replicas at its start and then every 10 s. A failover before it knows
    // all of them would leave the others behind.
    if (!(await until(() => stores.#areReplicated(), { everyMs: 50, limitMs: SETTLED_MS })))
      throw new Error(`the replicas do not connect:\n${await stores.#describe()}`);
    for (const server of servers) server.start();
    await stores.settled();
    return stores;
  }

  async #areReplicated(): Promise<boolean> {
    const [, , copies] = (await (await this.master())?.role()) ?? [];
    return Array.isArray(copies) && copies.length === this.servers.length - 1;
  }

  /** Returns the master; undefined while there is none, or two. */
  async master(): Promise<StoreServer | undefined> {
    const roles = await Promise.all(this.servers.map((server) => server.role()));
    const masters = this.servers.filter((_, index) => roles[index]?.[0] === 'master');
    return masters.length === 1 ? masters[0] : undefined;
  }

  /**
   * Resolves when one master exists, all replicas have its writes from the time when it was first
   * seen with all of them, and each Sentinel knows it. A master under load is always some bytes
   * ahead.
   */
  async settled(): Promise<void> {
    const deadlineMs = Date.now() + SETTLED_MS;
    let goal: { readonly master: string; readonly offset: number } | undefined;
    for (;;) {
      const look = await this.#look();
      if (look === undefined) goal = undefined;
      else if (goal?.master !== look.master) goal = { master: look.master, offset: look.written };
      else if (look.copied >= goal.offset) return;
      if (Date.now() > deadlineMs)
        throw new Error(`the store does not come together again:\n${await this.#describe()}`);
      await sleep(100);
    }
  }

  /**
   * Returns undefined while the servers disagree. `copied` is the offset of the last replica in
   * bytes.
   */
  async #look(): Promise<
    { readonly master: string; readonly written: number; readonly copied: number } | undefined
  > {
    const master = await this.master();
    if (master === undefined) return undefined;
    const [, written, copies] = await master.role();
    if (!Array.isArray(copies) || copies.length < this.servers.length - 1) return undefined;
    const told = await Promise.all(this.servers.map((server) => server.sentinelsMaster()));
    const { address } = master.host;
    if (told.some((other) => other !== address)) return undefined;
    const offsets = (copies as string[][]).map(([, , offset]) => Number(offset));
    return { master: address, written: Number(written), copied: Math.min(...offsets) };
  }

  async #describe(): Promise<string> {
    const lines = this.servers.map(async (server) => {
      const role = JSON.stringify(await server.role());
      const { address } = server.host;
      return `${address}: ${role}\n${await server.sentinelsView()}\n${await server.sentinelsLog()}`;
    });
    return (await Promise.all(lines)).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.servers) await server.stop();
  }
}

export class StoreServer {
  readonly host: WiredHost;
  readonly folder: string;
  readonly socket: string;
  readonly #sentinelSocket: string;
  #redis: ChildProcess | undefined;
  #sentinel: ChildProcess | undefined;

  constructor(host: WiredHost, folder: string) {
    this.host = host;
    this.folder = folder;
    this.socket = join(folder, 'redis.sock');
    this.#sentinelSocket = join(folder, 'sentinel.sock');
  }

  async prepare(master: string): Promise<void> {
    const { address } = this.host;
    await mkdir(this.folder);
    const common = ['protected-mode no', `bind ${address}`, `dir ${this.folder}`];
    await writeConfig(join(this.folder, 'redis.conf'), [
      ...common,
      ...[`port ${REDIS_PORT}`, `unixsocket ${this.socket}`, 'save ""'],
      ...['appendonly yes', 'appendfsync always', 'repl-diskless-sync-delay 0', 'repl-timeout 10'],
      ...(address === master ? [] : [`replicaof ${master} ${REDIS_PORT}`]),
    ]);
    await writeConfig(join(this.folder, 'sentinel.conf'), [
      ...common,
      ...[`port ${SENTINEL_PORT}`, `unixsocket ${this.#sentinelSocket}`],
      `logfile ${join(this.folder, SENTINEL_LOG)}`,
      `sentinel monitor ${NAME} ${master} ${REDIS_PORT} 2`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} 5000`,
    ]);
  }

  /** Starts the stopped servers with their existing files: Sentinels record the roles there. */
  start(): void {
    this.startRedis();
    if (!isRunning(this.#sentinel))
      this.#sentinel = this.#run(join(this.folder, 'sentinel.conf'), '--sentinel');
  }

  startRedis(): void {
    if (!isRunning(this.#redis)) this.#redis = this.#run(join(this.folder, 'redis.conf'));
  }

  #run(...words: string[]): ChildProcess {
    const [enter = '', ...more] = this.host.enter;
    return spawn(enter, [...more, 'redis-server', ...words], { stdio: 'ignore' });
  }

  async kill(): Promise<void> {
    await end(this.#redis);
  }

  async killSentinel(): Promise<void> {
    await end(this.#sentinel);
  }

  /** Stops the process, with its connections open. */
  pause(): void {
    this.#redis?.kill('SIGSTOP');
  }

  resume(): void {
    this.#redis?.kill('SIGCONT');
  }

  /** Returns the answer to ROLE; empty without an answer. */
  async role(): Promise<readonly unknown[]> {
    const answer = await this.ask(this.socket, 'ROLE').catch(() => []);
    return Array.isArray(answer) ? (answer as unknown[]) : [];
  }

  /** Returns the master's address as the Sentinel sees it. */
  async sentinelsMaster(): Promise<string> {
    const words = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME] as const;
    const answer = await this.ask(this.#sentinelSocket, ...words).catch(() => []);
    return Array.isArray(answer) ? String(answer[0]) : '';
  }

  /** Returns the Sentinel's view of the master; empty without an answer. */
  async sentinelsView(): Promise<string> {
    const answer = await this.ask(this.#sentinelSocket, 'SENTINEL', 'MASTER', NAME).catch(() => '');
    return JSON.stringify(answer);
  }

  async sentinelsLog(): Promise<string> {
    const text = await readFile(join(this.folder, SENTINEL_LOG), 'utf8').catch(() => '');
    return text.slice(-LOG_TAIL_CHARACTERS);
  }

  async ask(path: string, ...words: [string, ...string[]]): Promise<unknown> {
    const client = new Redis({ path, lazyConnect: true, retryStrategy: () => null, commandTimeout: 2000 }); // prettier-ignore
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await client.call(...words);
    } finally {
      client.disconnect();
    }
  }

  async stop(): Promise<void> {
    await end(this.#sentinel);
    await end(this.#redis);
  }
}

async function writeConfig(path: string, lines: readonly string[]): Promise<void> {
  await writeFile(path, `${lines.join('\n')}\n`);
}

function isRunning(child: ChildProcess | undefined): boolean {
  return child !== undefined && child.exitCode === null && child.signalCode === null;
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || !isRunning(child)) return;
  const gone = once(child, 'exit');
  child.kill('SIGCONT');
  child.kill('SIGKILL');
  await gone;
}
