import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import type { Clock } from '#shared/clock/clock.ts';
import type { MetadEvent } from '#shared/contract/metad-control.ts';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { installDir } from '#shared/paths/install-dir.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { type ContentProvider, type ContentServer, startContentServer } from './content-server.ts';
import { createControlChannel } from './control-request.ts';
import { type EventOptions, readEvents } from './event-stream.ts';
import { createMetadCalls, type MetadCalls } from './metad-client.ts';
import { MetadSupervisor } from './metad-supervisor.ts';
import { ensureSystemUser } from '../../host/system-user.ts';

/** Command line of the program without its own options: `node --flag …/metad/main.ts`. */
export interface MetadLauncher {
  readonly command: string;
  readonly args: readonly string[];
}

export interface MetadLinkOptions {
  readonly paths: RootPaths;
  readonly launcher: MetadLauncher;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Unprivileged user, created when missing (default `gnt-metad`). */
  readonly user?: string;
  /** Folder with all files that metad's program needs; this checkout by default. */
  readonly programDir?: string;
  /** Time for a running metad to answer at the start. */
  readonly adoptTimeoutMs?: number | undefined;
}

/** Keeps metad running and calls it. Every call fails with METAD_UNAVAILABLE while it is down. */
export interface MetadLink extends MetadCalls {
  /**
   * Opens the content socket, which serves `content`, then adopts a running metad or starts a new
   * one. Resolves when it answers. Needs the namespace.
   * @throws AppError METAD_UNAVAILABLE with the last line of metad's log, HOST_PREREQUISITE
   */
  start(content: ContentProvider): Promise<void>;
  /** Null while metad is down. */
  readonly pid: number | null;
  /** Starts after the first one. */
  readonly restarts: number;
  /**
   * Adds a callback for each new metad that answers, except the first. A new metad has no views:
   * push them again.
   */
  onRestarted(callback: () => void | Promise<void>): void;
  /** True when `start` adopted a running metad, which may hold views of removed instances. */
  readonly adopted: boolean;
  /**
   * Yields validated events until the signal aborts. Reconnects and continues after the last event.
   */
  events(options: EventOptions): AsyncIterable<MetadEvent>;
  /** Ends metad by SIGTERM, then SIGKILL, and closes the content socket. */
  stop(): Promise<void>;
  /** Closes the sockets and leaves metad running. */
  detach(): Promise<void>;
}

const DEFAULT_USER = 'gnt-metad';

export function createMetadLink(options: MetadLinkOptions): MetadLink {
  const { paths, logger } = options;
  const channel = createControlChannel(paths.metadControlSocket);
  const callbacks: (() => void | Promise<void>)[] = [];
  let supervisor: MetadSupervisor | undefined;
  let contentServer: ContentServer | undefined;

  const notify = (): void => {
    for (const callback of callbacks) {
      // A failing callback must not end the watch over metad.
      Promise.resolve()
        .then(callback)
        .catch((error: unknown) =>
          logger.error('metad.restart-callback-failed', { reason: messageOf(error) }),
        );
    }
  };
  const close = async (): Promise<void> => {
    channel.close();
    await contentServer?.close();
  };

  return {
    ...createMetadCalls(channel),
    async start(content) {
      const { uid, gid } = await ensureSystemUser(options.user ?? DEFAULT_USER);
      prepareDirectory(paths.metadDir, uid, gid);
      contentServer = await startContentServer({
        socketPath: paths.contentSocket,
        gid,
        content,
        logger,
        clock: options.clock,
      });
      supervisor = new MetadSupervisor({
        paths,
        ...options.launcher,
        programDir: options.programDir ?? installDir,
        user: { uid, gid },
        channel,
        logger,
        clock: options.clock,
        onRestarted: notify,
        adoptTimeoutMs: options.adoptTimeoutMs,
      });
      try {
        await supervisor.start();
      } catch (error) {
        await close();
        throw error;
      }
    },
    get pid() {
      return supervisor?.pid ?? null;
    },
    get restarts() {
      return supervisor?.restarts ?? 0;
    },
    get adopted() {
      return supervisor?.adopted ?? false;
    },
    onRestarted: (callback) => void callbacks.push(callback),
    events: (eventOptions) => readEvents(channel, logger, eventOptions),
    async stop() {
      await supervisor?.stop();
      await close();
    },
    async detach() {
      await supervisor?.release();
      await close();
    },
  };
}

/** Creates the folder of metad's control socket. Only root and metad may enter it. */
function prepareDirectory(path: string, uid: number, gid: number): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o750 });
    chownSync(path, uid, gid);
    chmodSync(path, 0o750);
  } catch (error) {
    throw new AppError('HOST_PREREQUISITE', `cannot prepare ${path}: ${messageOf(error)}`, {
      hint: 'Run gnt-noded as root.',
      cause: error,
    });
  }
}
