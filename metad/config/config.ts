import { basename, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { LogLevel } from '#shared/log/log.ts';
import { GANETI_OS_PATHS } from '#shared/paths/root-paths.ts';
import { OPTIONS } from './options.ts';

interface NodeConfig {
  readonly kind: 'node';
  readonly controlSocket: string;
  readonly contentSocket: string;
  /** The previous process was killed, and its guests may still run. */
  readonly isSuccessor: boolean;
}

/** Options as a replacement of Ganeti's own metadata daemon. */
export interface GanetiConfig {
  readonly kind: 'ganeti';
  readonly ganetiSocket: string;
  readonly pidFile: string;
  readonly bindAddress: string;
  readonly port: number;
  readonly osSearchPath: readonly string[];
  readonly packageDirectories: readonly string[];
  readonly controlSocket: string | null;
  /** IP TTL of answers; the kernel's when null. */
  readonly hopLimit: number | null;
  /** Standard error when null. */
  readonly logFile: string | null;
}

export type MetadConfig = (NodeConfig | GanetiConfig) & { readonly logLevel: LogLevel };

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/**
 * @param root `GNT_ROOT`: the defaults are below it
 * @returns a word for --help and --version
 * @throws AppError USAGE
 */
export function parseConfig(
  args: readonly string[],
  root: string,
): MetadConfig | 'help' | 'version' {
  const values = parse(args);
  if (values.help) return 'help';
  if (values.version) return 'version';
  const asked = values.debug ? 'debug' : values['log-level'];
  const logLevel = LEVELS.find((level) => level === asked);
  if (!logLevel) {
    const text = values['log-level'];
    throw new AppError('USAGE', `--log-level: ${text} is not one of ${LEVELS.join(', ')}`);
  }
  if (values.ganeti) return { ...ganetiConfig(values, root), logLevel };
  return {
    kind: 'node',
    controlSocket: required(values['control-socket'], '--control-socket'),
    contentSocket: required(values['content-socket'], '--content-socket'),
    isSuccessor: values.successor,
    logLevel,
  };
}

type Values = ReturnType<typeof parse>;

function ganetiConfig(values: Values, root: string): GanetiConfig {
  const ganetiSocket = values['ganeti-socket'] ?? join(root, 'run/ganeti/socket/ganeti-metad');
  const port = Number(values.port);
  if (!/^\d{1,5}$/.test(values.port) || port < 1 || port > 65_535) {
    throw new AppError('USAGE', `--port: ${values.port} is not a TCP port`);
  }
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(values.bind)) {
    throw new AppError('USAGE', `--bind: ${values.bind} is not an IPv4 address`);
  }
  return {
    kind: 'ganeti',
    ganetiSocket,
    pidFile: values['ganeti-pid-file'] ?? pidFileFor(ganetiSocket),
    bindAddress: values.bind,
    port,
    osSearchPath: values['os-search-path'] ?? GANETI_OS_PATHS.map((path) => join(root, path)),
    packageDirectories: values['package-directory'] ?? [join(root, 'srv/ganeti/packages')],
    controlSocket: values['control-socket'] ?? null,
    hopLimit: parseHopLimit(values['hop-limit']),
    logFile: values['log-file'] ?? null,
  };
}

function parseHopLimit(text: string | undefined): number | null {
  if (text === undefined) return null;
  const hops = Number(text);
  if (/^\d{1,3}$/.test(text) && hops >= 1 && hops <= 255) return hops;
  throw new AppError('USAGE', `--hop-limit: ${text} is not a number from 1 to 255`);
}

/** Ganeti keeps its sockets in a folder `socket`, and its pid files above it. */
function pidFileFor(socketPath: string): string {
  const folder = dirname(socketPath);
  return join(basename(folder) === 'socket' ? dirname(folder) : folder, 'ganeti-metad.pid');
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: OPTIONS,
    }).values;
  } catch (error) {
    throw new AppError('USAGE', messageOf(error), { hint: 'See gnt-metad --help', cause: error });
  }
}

function required(value: string | undefined, option: string): string {
  if (value !== undefined && value !== '') return value;
  throw new AppError('USAGE', `${option} is missing`, {
    hint: 'The node daemon starts gnt-metad itself. For --ganeti see gnt-metad --help',
  });
}
