import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { MAX_MESSAGE_BYTES } from '#shared/contract/channel-message.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { OFFSET_HEADER } from '#shared/contract/metad-control.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { KeptMachine, MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import type { MetadCalls } from '../../net/metad-link/metad-client.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { flag, route, wholeNumber, type AnyApiRoute, type StreamRoute } from './api-route.ts';

/** Longest wait for bytes of the channel that one request may ask for, in seconds. */
const MAX_WAIT_S = 60;
const MAX_PORT = 65_535;
const BYTES = 'application/octet-stream';

export interface ChannelRoutesDependencies {
  readonly instances: Pick<InstanceRepository, 'findByName' | 'expandName'>;
  readonly keeper: Pick<MachineKeeper, 'get'>;
  readonly metad: Pick<
    MetadCalls,
    'replaceTokens' | 'tree' | 'readQueue' | 'writeQueue' | 'connect'
  >;
}

/** What goes over the channel of an instance that runs. */
export function channelRoutes(dependencies: ChannelRoutesDependencies): readonly AnyApiRoute[] {
  const { metad } = dependencies;
  const find = (name: string): Promise<string> => findOnChannel(name, dependencies);
  return [
    route({
      method: 'DELETE',
      path: '/v1/instances/{name}/tokens',
      summary: 'Revokes the session tokens of the dialect ec2',
      answers: { 204: null },
      handle: async ({ params }) => {
        await metad.replaceTokens(await find(params.name));
        return { status: 204 };
      },
    }),
    route({
      method: 'GET',
      path: '/v1/instances/{name}/metadata/{*path}',
      summary: 'Returns what the guest reads at a path, with secrets replaced',
      query: z.object({ partial: flag('1: return lost secrets as null instead of status 410') }),
      answers: { 200: { type: '*/*' } },
      handle: async ({ params, query }) => {
        const uuid = await find(params.name);
        const { status, contentType, body } = await metad.tree(
          uuid,
          params.path,
          query.partial !== undefined,
        );
        return { status, type: contentType, body };
      },
    }),
    route({
      method: 'GET',
      path: '/v1/instances/{name}/queue',
      summary: `Reads the bytes that the guest wrote. The header ${OFFSET_HEADER} is the next offset`,
      query: z.object({
        wait: wholeNumber('seconds to wait for bytes', MAX_WAIT_S),
        offset: wholeNumber(
          'return bytes from this offset on and drop earlier ones',
          Number.MAX_SAFE_INTEGER,
        ),
      }),
      answers: { 200: { type: BYTES }, 204: null },
      handle: async ({ params, query, signal }) => {
        const { offset, wait: waitS } = query;
        const read = await metad.readQueue(await find(params.name), {
          signal,
          offset,
          waitS,
        });
        if (read === null) return { status: 204 };
        const headers = { [OFFSET_HEADER]: String(read.nextOffset) };
        return { status: 200, headers, body: read.bytes };
      },
    }),
    route({
      method: 'POST',
      path: '/v1/instances/{name}/queue',
      summary: 'Queues bytes for the guest, at most 64 KiB, completely or not at all',
      request: { type: BYTES, maxBytes: MAX_MESSAGE_BYTES },
      answers: { 204: null },
      handle: async ({ params, body }) => {
        await metad.writeQueue(await find(params.name), body);
        return { status: 204 };
      },
    }),
  ];
}

export function channelStreams(dependencies: ChannelRoutesDependencies): readonly StreamRoute[] {
  return [
    {
      path: '/v1/instances/{name}/connect/{port}',
      summary: 'Connects to a TCP port of the guest (`Upgrade: tcp`)',
      open: async ({ name = '', port: text = '' }) => {
        const port = parsePort(text);
        return dependencies.metad.connect(await findOnChannel(name, dependencies), port);
      },
    },
    {
      path: '/v1/instances/{name}/console',
      summary: 'Connects to the serial console (`Upgrade: tcp`)',
      open: async ({ name = '' }) =>
        connectUnix((await findRunning(name, dependencies)).kept.machine.consoleSocket),
    },
  ];
}

/** @returns the instance's UUID @throws AppError INSTANCE_NOT_FOUND, INSTANCE_STATE */
async function findOnChannel(
  name: string,
  dependencies: ChannelRoutesDependencies,
): Promise<string> {
  const { instance, kept } = await findRunning(name, dependencies);
  if (kept.device !== null) return instance.uuid;
  throw new AppError('INSTANCE_STATE', `the channel of instance '${instance.name}' is off`, {
    hint: `Switch it on, then reboot: gnt-instance modify --communication yes ${instance.name}; gnt-instance reboot ${instance.name}`,
  });
}

async function findRunning(
  name: string,
  { instances, keeper }: ChannelRoutesDependencies,
): Promise<{ readonly instance: InstanceRecord; readonly kept: KeptMachine }> {
  const instance = await instances.findByName(await instances.expandName(name));
  const kept = keeper.get(instance.uuid);
  if (kept !== undefined) return { instance, kept };
  throw new AppError('INSTANCE_STATE', `instance '${instance.name}' is not running`, {
    hint: `Start it: gnt-instance startup ${instance.name}`,
  });
}

/** @throws AppError NOT_FOUND, VALIDATION */
function parsePort(text: string): number {
  if (!/^\d+$/.test(text)) throw new AppError('NOT_FOUND', `'${text}' is not a port`);
  const port = Number(text);
  if (port >= 1 && port <= MAX_PORT) return port;
  throw new AppError('VALIDATION', `port: expected a number from 1 to ${MAX_PORT}, not ${text}`);
}

function connectUnix(path: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', (error) =>
      reject(
        new AppError('CONFLICT', `cannot open the console: ${error.message}`, {
          cause: error,
        }),
      ),
    );
  });
}
