import { join } from 'node:path';
import type { Command } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { parseListenAddress } from '#shared/socket/listen-address.ts';

const DEFAULT_PORT = 5083;

export interface WebListenOptions {
  readonly web?: string | undefined;
  readonly webUsers?: string | undefined;
  readonly webCertificate?: string | undefined;
}

export function addWebOptions(program: Command): void {
  program
    .option(
      '--web <host:port>',
      `serve the web page over TLS on this address (usual port: ${DEFAULT_PORT})`,
    )
    .option('--web-users <file>', 'users file of the web page (default: etc/gnt/rapi-users)')
    .option(
      '--web-certificate <file>',
      'PEM file with key and certificate; created if missing (default: etc/gnt/web.pem)',
    );
}

export interface WebSettings {
  readonly host: string;
  readonly port: number;
  readonly usersFile: string;
  readonly certificateFile: string;
}

/** @throws AppError USAGE naming the option */
export function parseWebOptions(
  { web, webUsers, webCertificate }: WebListenOptions,
  { root }: RootPaths,
): WebSettings | null {
  if (web !== undefined)
    return {
      ...parseListenAddress('--web', web, DEFAULT_PORT),
      usersFile: webUsers ?? join(root, 'etc/gnt/rapi-users'),
      certificateFile: webCertificate ?? join(root, 'etc/gnt/web.pem'),
    };
  if (webUsers === undefined && webCertificate === undefined) return null;
  throw new AppError('USAGE', '--web-users and --web-certificate need --web', {
    hint: `--web 0.0.0.0:${DEFAULT_PORT} serves the web page on every address`,
  });
}
