import { Redis } from 'ioredis';

/** Work of a server since its start. */
export interface ServerWork {
  readonly cpuMs: number;
  /** Time in commands, without reading them or writing answers. */
  readonly commandsMs: number;
  readonly sentBytes: number;
}

export interface ServerWatch extends AsyncDisposable {
  readonly redis: Redis;
  /** Returns the server's work during `work`, including the cost of one INFO. */
  during(work: () => Promise<unknown>): Promise<ServerWork>;
}

export function watchServer(socket: string): ServerWatch {
  const redis = new Redis(socket);
  const look = async (): Promise<ServerWork> => parseWork(await redis.info('everything'));
  return {
    redis,
    during: async (work) => {
      const before = await look();
      await work();
      const after = await look();
      return {
        cpuMs: after.cpuMs - before.cpuMs,
        commandsMs: after.commandsMs - before.commandsMs,
        sentBytes: after.sentBytes - before.sentBytes,
      };
    },
    [Symbol.asyncDispose]: async () => {
      await redis.quit();
    },
  };
}

function parseWork(info: string): ServerWork {
  const number = (name: string): number =>
    Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);
  // INFO is the measurement itself.
  const commands = [...info.matchAll(/^cmdstat_(?!info)[^:]+:calls=\d+,usec=(\d+)/gm)];
  return {
    cpuMs: 1000 * (number('used_cpu_user') + number('used_cpu_sys')),
    commandsMs: commands.reduce((sum, [, microseconds]) => sum + Number(microseconds), 0) / 1000,
    sentBytes: number('total_net_output_bytes'),
  };
}
