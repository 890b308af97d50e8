import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { setOwn } from '#shared/json/own-value.ts';
import type { Context } from '../../terminal/context.ts';
import { parseKeyValues } from '../../values/key-values.ts';
import { NONE } from '../instance/parse-documents.ts';

type Services = OpcodeOf<'CLUSTER_SET_PARAMS'>['exposeServices'];

/**
 * Parses `NAME=PORT:HOST:PORT`, `NAME=PORT/udp:HOST:PORT` and `NAME=PORT:unix:/PATH`. `NAME=none`,
 * `-NAME` and `NAME=default` remove a service. IPv6 hosts are in brackets.
 * @throws AppError USAGE
 */
export function parseServices(texts: readonly string[], context: Pick<Context, 'warn'>): Services {
  const services: Services = {};
  for (const [name, text] of parseRemovable('--expose-service', texts, context)) {
    setOwn(services, name, text === null ? null : parseService(name, text));
  }
  return services;
}

/** Splits a list at commas; `none` is an empty list. */
export function listOrNone(text: string): string[] {
  return text === NONE ? [] : text.split(',');
}

/**
 * Returns names and texts; null for `NAME=none`, `-NAME` and `NAME=default`. Warns of `NAME=`, the
 * former spelling.
 */
export function parseRemovable(
  option: string,
  texts: readonly string[],
  { warn }: Pick<Context, 'warn'>,
): [string, string | null][] {
  return texts
    .flatMap((text) => parseKeyValues(option, text))
    .map(({ key, value }) => {
      const text = value.kind === 'text' ? value.text : '';
      const isFormer = value.kind === 'text' && text === '';
      if (isFormer) warn(`${option} ${key}= is deprecated: write ${option} ${key}=${NONE}`);
      return [key, isFormer || value.kind === 'unset' || text === NONE ? null : text];
    });
}

function parseService(name: string, text: string): NonNullable<Services[string]> {
  const [, unixPort = '', word, socketPath] =
    /^(\d{1,5})(\/(?:tcp|udp))?:unix:(\/.*)$/.exec(text) ?? [];
  if (socketPath !== undefined && word === '/udp') throw socketForUdp(name, text);
  if (socketPath !== undefined && isPort(Number(unixPort)))
    return { port: Number(unixPort), socketPath };
  const match = /^(\d{1,5})(\/(?:tcp|udp))?:(\[[0-9A-Fa-f:.]+\]|[^:[\]]+):(\d{1,5})$/.exec(text);
  const port = Number(match?.[1]);
  const hostPort = Number(match?.[4]);
  if (match && isPort(port) && isPort(hostPort)) {
    const host = (match[3] ?? '').replaceAll(/[[\]]/g, '');
    return { port, host, hostPort, ...(match[2] === '/udp' && { protocol: 'udp' as const }) };
  }
  throw new AppError('USAGE', `option --expose-service: '${name}=${text}' is not a service`, {
    hint: 'Write --expose-service apt=3142:127.0.0.1:3142, dns=53/udp:127.0.0.1:53, or NAME=PORT:unix:/PATH; NAME=none removes it',
    details: { name },
  });
}

function socketForUdp(name: string, text: string): AppError {
  return new AppError(
    'USAGE',
    `option --expose-service: '${name}=${text}': a unix socket cannot receive UDP`,
    {
      hint: `Write --expose-service ${name}=PORT/udp:HOST:PORT, such as dns=53/udp:127.0.0.1:53`,
      details: { name },
    },
  );
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}
