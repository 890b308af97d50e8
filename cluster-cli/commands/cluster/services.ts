import type { OpcodeOf } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { setOwn } from '#shared/json/own-value.ts';
import { parseKeyValues } from '../../values/key-values.ts';

type Services = OpcodeOf<'CLUSTER_SET_PARAMS'>['exposeServices'];

/**
 * `NAME=PORT:HOST:PORT`, `NAME=PORT/udp:HOST:PORT`, `NAME=PORT:unix:/PATH`, `NAME=`, `-NAME` or
 * `NAME=default` to take it back; IPv6 hosts in brackets.
 * @throws AppError USAGE
 */
export function parseServices(texts: readonly string[]): Services {
  const services: Services = {};
  for (const [name, text] of parseRemovable('--expose-service', texts)) {
    setOwn(services, name, text === null ? null : parseService(name, text));
  }
  return services;
}

/** Name and text; null for `NAME=`, `-NAME` and `NAME=default`. */
export function parseRemovable(
  option: string,
  texts: readonly string[],
): [string, string | null][] {
  return texts
    .flatMap((text) => parseKeyValues(option, text))
    .map(({ key, value }) => {
      const isRemoval = value.kind === 'unset' || (value.kind === 'text' && value.text === '');
      return [key, isRemoval ? null : value.kind === 'text' ? value.text : ''];
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
    hint: 'write NAME=PORT:HOST:PORT, such as apt=3142:127.0.0.1:3142, NAME=PORT/udp:HOST:PORT, such as dns=53/udp:127.0.0.1:53, or NAME=PORT:unix:/PATH; NAME= takes it back',
    details: { name },
  });
}

function socketForUdp(name: string, text: string): AppError {
  return new AppError(
    'USAGE',
    `option --expose-service: '${name}=${text}': a unix socket takes connections, not UDP's datagrams`,
    {
      hint: `write ${name}=PORT/udp:HOST:PORT, such as dns=53/udp:127.0.0.1:53`,
      details: { name },
    },
  );
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}
