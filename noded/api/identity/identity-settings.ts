import { join } from 'node:path';
import type { Command } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { parseListenAddress } from '#shared/socket/listen-address.ts';

const DEFAULT_PORT = 5081;

export interface IdentityListenOptions {
  readonly identityListen?: string | undefined;
  readonly identityCertificate?: string | undefined;
}

export function addIdentityOptions(program: Command): void {
  program
    .option(
      '--identity-listen <host:port>',
      `serve the public identity keys over TLS on this address (usual port: ${DEFAULT_PORT})`,
    )
    .option(
      '--identity-certificate <file>',
      'PEM file with key and certificate; created if missing (default: etc/gnt/identity.pem)',
    );
}

export interface IdentityListenSettings {
  readonly host: string;
  readonly port: number;
  readonly certificateFile: string;
}

/** @throws AppError USAGE naming the option */
export function parseIdentityOptions(
  { identityListen, identityCertificate }: IdentityListenOptions,
  paths: RootPaths,
): IdentityListenSettings | null {
  if (identityListen !== undefined)
    return {
      ...parseListenAddress('--identity-listen', identityListen, DEFAULT_PORT),
      certificateFile: identityCertificate ?? join(paths.root, 'etc/gnt/identity.pem'),
    };
  if (identityCertificate === undefined) return null;
  throw new AppError('USAGE', '--identity-certificate needs --identity-listen', {
    hint: `--identity-listen 0.0.0.0:${DEFAULT_PORT} serves the keys on every address`,
  });
}
