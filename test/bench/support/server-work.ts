import { Redis } from 'ioredis';

/** What a server has done since it was started. */
export interface ServerWork {
  readonly cpuMs: number;
  /** In its commands alone, without reading them and writing answers. */
  readonly commandsMs: number;
  readonly sentBytes: number;
}

export interface ServerWatch extends AsyncDisposable {
  readonly redis: Redis;
  /** What it did while something went on; a question costs some of it. */
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
  // Its own questions are not what is measured.
  const commands = [...info.matchAll(/^cmdstat_(?!info)[^:]+:calls=\d+,usec=(\d+)/gm)];
  return {
    cpuMs: 1000 * (number('used_cpu_user') + number('used_cpu_sys')),
    commandsMs: commands.reduce((sum, [, microseconds]) => sum + Number(microseconds), 0) / 1000,
    sentBytes: number('total_net_output_bytes'),
  };
}
