import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { WiredHost } from './wire.ts';

const NAME = 'gnt';
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const DOWN_AFTER_MS = 1500;
const SETTLED_MS = 60_000;

/** A Redis and a Sentinel on each host: the first host's is the master at first. */
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
    for (const server of servers) server.start();
    const stores = new StoreServers(servers);
    await stores.settled();
    return stores;
  }

  /** Undefined while there is none, or two. */
  async master(): Promise<StoreServer | undefined> {
    const roles = await Promise.all(this.servers.map((server) => server.role()));
    const masters = this.servers.filter((_, index) => roles[index]?.[0] === 'master');
    return masters.length === 1 ? masters[0] : undefined;
  }

  /** Resolves when there is one master, and the others have all that it has. */
  async settled(): Promise<void> {
    const deadlineMs = Date.now() + SETTLED_MS;
    while (!(await this.#areSettled())) {
      if (Date.now() > deadlineMs) throw new Error('the store does not come together again');
      await sleep(100);
    }
  }

  async #areSettled(): Promise<boolean> {
    const master = await this.master();
    const [, written, copies] = (await master?.role()) ?? [];
    if (!Array.isArray(copies) || copies.length < this.servers.length - 1) return false;
    const isCaughtUp = (copies as string[][]).every(
      ([, , offset]) => Number(offset) >= Number(written),
    );
    const told = await Promise.all(this.servers.map((server) => server.sentinelsMaster()));
    return isCaughtUp && told.every((address) => address === master?.host.address);
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
      `sentinel monitor ${NAME} ${master} ${REDIS_PORT} 2`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} 5000`,
    ]);
  }

  /** What does not run, over what it had: Sentinels write down who is whose replica. */
  start(): void {
    const run = (...words: string[]): ChildProcess => {
      const [enter = '', ...more] = this.host.enter;
      return spawn(enter, [...more, 'redis-server', ...words], { stdio: 'ignore' });
    };
    if (!isRunning(this.#redis)) this.#redis = run(join(this.folder, 'redis.conf'));
    if (!isRunning(this.#sentinel))
      this.#sentinel = run(join(this.folder, 'sentinel.conf'), '--sentinel');
  }

  async kill(): Promise<void> {
    await end(this.#redis);
  }

  async killSentinel(): Promise<void> {
    await end(this.#sentinel);
  }

  /** It stands still, with its connections. */
  pause(): void {
    this.#redis?.kill('SIGSTOP');
  }

  resume(): void {
    this.#redis?.kill('SIGCONT');
  }

  /** As ROLE tells it; empty when it does not answer. */
  async role(): Promise<readonly unknown[]> {
    const answer = await this.ask(this.socket, 'ROLE').catch(() => []);
    return Array.isArray(answer) ? (answer as unknown[]) : [];
  }

  /** Whom its Sentinel takes for the master. */
  async sentinelsMaster(): Promise<string> {
    const words = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME] as const;
    const answer = await this.ask(this.#sentinelSocket, ...words).catch(() => []);
    return Array.isArray(answer) ? String(answer[0]) : '';
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
