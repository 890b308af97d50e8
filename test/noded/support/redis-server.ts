import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface RedisServer {
  readonly socket: string;
  readonly directory: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** SIGKILL and start over the same data. */
  restart(): Promise<void>;
  /** SIGSTOP: connections stay, and nothing is answered. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

/** A real redis-server on a unix socket of its own. */
export async function startRedis(
  options: { readonly appendOnly?: boolean; readonly more?: readonly string[] } = {},
): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-redis-'));
  const socket = join(directory, 'redis.sock');
  const args = ['--port', '0', '--unixsocket', socket, '--dir', directory, '--save', ''];
  if (options.appendOnly) args.push('--appendonly', 'yes', '--appendfsync', 'always');
  args.push(...(options.more ?? []));
  let child = await launch(args);
  return {
    socket,
    directory,
    kill: () => kill(child, 'SIGKILL'),
    restart: async () => {
      await kill(child, 'SIGKILL');
      child = await launch(args);
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    stop: async () => {
      child.kill('SIGCONT');
      await kill(child, 'SIGTERM');
      await rm(directory, { recursive: true });
    },
  };
}

async function launch(args: readonly string[]): Promise<ChildProcess> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    if (/ready to accept connections/i.test(line) || line.includes('connections at')) break;
  }
  child.stdout.resume();
  return child;
}

async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}
