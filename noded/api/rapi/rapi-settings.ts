import { join } from 'node:path';
import type { Command } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';

/** The port of Ganeti's remote API. */
const DEFAULT_PORT = 5080;

export interface RapiOptions {
  readonly rapi?: string | undefined;
  readonly rapiUsers?: string | undefined;
  readonly rapiCertificate?: string | undefined;
}

export function addRapiOptions(program: Command): void {
  program
    .option(
      '--rapi <host:port>',
      'serve the remote API over TLS on this address (usual port: 5080)',
    )
    .option('--rapi-users <file>', 'users file of the remote API (default: etc/gnt/rapi-users)')
    .option(
      '--rapi-certificate <file>',
      'PEM file with key and certificate; created if missing (default: etc/gnt/rapi.pem)',
    );
}

export interface RapiSettings {
  readonly host: string;
  readonly port: number;
  readonly usersFile: string;
  readonly certificateFile: string;
}

/** @throws AppError USAGE naming the option */
export function parseRapiOptions(options: RapiOptions, paths: RootPaths): RapiSettings | null {
  if (options.rapi === undefined) {
    if (options.rapiUsers === undefined && options.rapiCertificate === undefined) return null;
    throw new AppError('USAGE', '--rapi-users and --rapi-certificate need --rapi', {
      hint: `--rapi 0.0.0.0:${DEFAULT_PORT} serves the remote API on every address`,
    });
  }
  return {
    ...parseListenAddress('--rapi', options.rapi, DEFAULT_PORT),
    usersFile: options.rapiUsers ?? join(paths.root, 'etc/gnt/rapi-users'),
    certificateFile: options.rapiCertificate ?? join(paths.root, 'etc/gnt/rapi.pem'),
  };
}

/** Parses HOST:PORT, HOST or [ADDRESS]:PORT. @throws AppError USAGE naming the option */
export function parseListenAddress(
  option: string,
  text: string,
  defaultPort: number,
): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3] ?? defaultPort);
  if (host === undefined || port > 65_535) {
    throw new AppError('USAGE', `${option}: '${text}' is not HOST:PORT`, {
      hint: `Give an address of this host, such as 192.0.2.1:${defaultPort} or [::]:${defaultPort}.`,
    });
  }
  return { host, port };
}
