import { closeSync, openSync } from 'node:fs';
import { pino } from 'pino';
import { describeError } from './describe-error.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
export type LogFields = Readonly<Record<string, unknown>>;

/** A JSON record per line. The event is a fixed name (`channel.up`), facts are in fields. */
export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  child(fields: LogFields): Logger;
}

export interface LogOptions {
  readonly program: string;
  readonly level: LogLevel;
  /** File descriptor to write to; 2 is stderr. */
  readonly fd: number;
  /** File to append to, instead of the descriptor. */
  readonly file?: string | null;
}

export interface RootLogger extends Logger {
  /**
   * Opens the file again, for log rotation. A descriptor stays open.
   * @throws Error of the system; records still go to the former file
   */
  reopen(): void;
}

/** Limit of records that a full disk did not take, kept for the next write. */
const MAX_UNWRITTEN_BYTES = 65_536;
/** Ganeti's mode of its logs. */
const LOG_FILE_MODE = 0o600;

/**
 * Creates a logger, and hides the logging library from other files. Writes are synchronous: a
 * record before a crash is not lost.
 * @throws Error of the system if the file does not open
 */
export function createLogger(options: LogOptions): RootLogger {
  const { fd, file = null } = options;
  const destination = pino.destination({
    ...(file === null ? { fd } : { dest: file, mode: LOG_FILE_MODE }),
    sync: true,
    maxLength: MAX_UNWRITTEN_BYTES,
  });
  // A failed write (a full disk) must not end the process; later ones are tried again.
  destination.on('error', () => undefined);
  const root = pino(
    {
      level: options.level,
      base: { program: options.program, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: 'event',
      serializers: { err: describeUnlessDone },
    },
    destination,
  );
  const reopen = (): void => {
    if (file === null) return;
    // A failed `reopen` would close the former descriptor twice at the next one.
    closeSync(openSync(file, 'a', LOG_FILE_MODE));
    destination.reopen();
  };
  return { ...wrap(root), reopen };
}

/** Passes on the description that code with a masked message supplies. */
function describeUnlessDone(err: unknown): unknown {
  return err instanceof Error ? describeError(err) : err;
}

interface PinoLike {
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
  child(fields: object): PinoLike;
}

function wrap(target: PinoLike): Logger {
  return {
    debug: (event, fields = {}) => target.debug(fields, event),
    info: (event, fields = {}) => target.info(fields, event),
    warn: (event, fields = {}) => target.warn(fields, event),
    error: (event, fields = {}) => target.error(fields, event),
    child: (fields) => wrap(target.child(fields)),
  };
}

/** For code without a logger: tests and one-shot tools. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
