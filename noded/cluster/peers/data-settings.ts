import type { Command } from 'commander';
import { AppError } from '#shared/errors/app-error.ts';
import { type ListenAddress, parseListenAddress } from '#shared/socket/listen-address.ts';
import { DEFAULT_DATA_PORT } from './node-links.ts';

export interface DataOptions {
  readonly dataAddress?: string | undefined;
}

export function addDataOptions(program: Command): void {
  program.option(
    '--data-address <host[:port]>',
    `address for data of other nodes (default: this host on its way to the store:${DEFAULT_DATA_PORT})`,
  );
}

/** @returns null without the option @throws AppError USAGE */
export function parseDataOptions({ dataAddress }: DataOptions): ListenAddress | null {
  if (dataAddress === undefined) return null;
  const address = parseListenAddress('--data-address', dataAddress, DEFAULT_DATA_PORT);
  if (/^(::ffff:)?(0+\.0+\.0+\.0+|0|[0:]+)$/i.test(address.host)) {
    throw new AppError('USAGE', `--data-address: other nodes cannot connect to ${address.host}`, {
      hint: `Give the address by which other nodes reach this host, such as 192.0.2.1:${DEFAULT_DATA_PORT}.`,
    });
  }
  return address;
}
