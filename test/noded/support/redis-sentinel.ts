import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePorts } from './free-ports.ts';

/** A real Redis with a replica, or more, watched by three real Sentinels. */
export interface SentinelGroup {
  /** As `--store` takes it. */
  readonly url: string;
  /** The one that takes writes, and the other one. */
  master(): Promise<SentinelRedis>;
  replica(): Promise<SentinelRedis>;
  replicas(): Promise<readonly SentinelRedis[]>;
  /** Connections that one of the Sentinels has been given. */
  connectionsToSentinel(): Promise<number>;
  pauseSentinels(): void;
  resumeSentinels(): void;
  /** Resolves when the replica has all that the master has. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

export interface SentinelRedis {
  readonly port: number;
  pause(): void;
  resume(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Over its data, as a replica of another one. */
  start(master: SentinelRedis): void;
  ask(...words: [string, ...(string | number)[]]): Promise<unknown>;
}

const NAME = 'gnt';
const SENTINELS = 3;
const DOWN_AFTER_MS = 1000;

export async function startSentinels(replicas = 1): Promise<SentinelGroup> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-sentinel-'));
  const [one = 0, ...ports] = await freePorts(1 + replicas + SENTINELS);
  const watchers = ports.slice(replicas);
  const servers = [
    createServerAt(directory, one),
    ...ports.slice(0, replicas).map((port) => createServerAt(directory, port, one)),
  ];
  for (const server of servers) await server.begin();
  const sentinels = await Promise.all(
    watchers.map(async (port) => {
      const file = join(directory, `sentinel-${port}.conf`);
      const lines = [
        `port ${port}`, `dir ${directory}`, 'bind 127.0.0.1', `sentinel monitor ${NAME} 127.0.0.1 ${one} 2`,
        `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
        `sentinel failover-timeout ${NAME} 5000`,
      ]; // prettier-ignore
      await writeFile(file, `${lines.join('\n')}\n`);
      return spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
    }),
  );
  const roleOf = async (server: SentinelRedis): Promise<string> => {
    const answer = await server.ask('ROLE').catch(() => []);
    return Array.isArray(answer) ? String(answer[0]) : '';
  };
  const find = async (role: string): Promise<SentinelRedis> => {
    for (;;) {
      for (const server of servers) if ((await roleOf(server)) === role) return server;
      await sleep(100);
    }
  };
  const settled = async (): Promise<void> => {
    for (;;) {
      const [, written, copies] = (await (await find('master')).ask('ROLE')) as [string, number, string[][]];
      if (copies.filter(([, , offset]) => Number(offset) >= written).length === replicas) return;
      await sleep(100);
    }
  }; // prettier-ignore
  await settled();
  // They know of the replica and of each other.
  for (const port of watchers) {
    const client = new Redis({ port, host: '127.0.0.1' });
    for (;;) {
      const text = String(await client.call('INFO', 'sentinel').catch(() => ''));
      if (text.includes(`slaves=${replicas},sentinels=${SENTINELS}`)) break;
      await sleep(100);
    }
    client.disconnect();
  }
  return {
    url: `sentinel://${watchers.map((port) => `127.0.0.1:${port}`).join(',')}/${NAME}`,
    master: () => find('master'),
    replica: () => find('slave'),
    replicas: async () => {
      const master = await find('master');
      return servers.filter((server) => server !== master);
    },
    connectionsToSentinel: async () => {
      const client = new Redis({ port: watchers[0] ?? 0, host: '127.0.0.1' });
      const text = String(await client.call('INFO', 'stats'));
      client.disconnect();
      return Number(/^total_connections_received:(\d+)/m.exec(text)?.[1]);
    },
    pauseSentinels: () => {
      for (const sentinel of sentinels) sentinel.kill('SIGSTOP');
    },
    resumeSentinels: () => {
      for (const sentinel of sentinels) sentinel.kill('SIGCONT');
    },
    settled,
    stop: async () => {
      for (const sentinel of sentinels) await end(sentinel);
      for (const server of servers) await server.kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function createServerAt(
  directory: string,
  port: number,
  of?: number,
): SentinelRedis & { begin(): Promise<void> } {
  let child: ChildProcess | undefined;
  const dir = join(directory, String(port));
  const args = [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''],
    ...['--appendonly', 'yes', '--appendfsync', 'always', '--repl-diskless-sync-delay', '0'],
  ];
  const start = (more: readonly string[] = []): void => {
    child = spawn('redis-server', [...args, ...more], { stdio: 'ignore' });
  };
  const ask: SentinelRedis['ask'] = async (...words) => {
    const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null, commandTimeout: 2000 }); // prettier-ignore
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await client.call(...words);
    } finally {
      client.disconnect();
    }
  };
  return {
    port,
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    kill: async () => {
      if (child) await end(child);
    },
    start: (master) => start(['--replicaof', '127.0.0.1', String(master.port)]),
    ask,
    begin: async () => {
      await mkdir(dir);
      start(of === undefined ? [] : ['--replicaof', '127.0.0.1', String(of)]);
      while ((await ask('PING').catch(() => '')) !== 'PONG') await sleep(50);
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
