import { join } from 'node:path';
import type { Command } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { parseListenAddress } from '#shared/socket/listen-address.ts';

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
