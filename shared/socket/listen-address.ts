import { AppError } from '../errors/app-error.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Parses HOST:PORT, HOST or [ADDRESS]:PORT. @throws AppError USAGE naming the option */
export function parseListenAddress(
  option: string,
  text: string,
  defaultPort: number,
): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3] ?? defaultPort);
  if (host === undefined || port > 65_535) {
    throw new AppError('USAGE', `${option}: '${text}' is not HOST:PORT`, {
      hint: `Give an address of this host, such as 192.0.2.1:${defaultPort} or [2001:db8::1]:${defaultPort}.`,
    });
  }
  return { host, port };
}
