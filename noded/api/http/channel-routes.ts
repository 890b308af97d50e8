import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { channelEndpoints, channelStreamEndpoints } from '#shared/contract/endpoints.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { OFFSET_HEADER } from '#shared/contract/metad-control.ts';
import { MAX_PORT } from '#shared/contract/number-limits.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { KeptMachine, MachineKeeper } from '../../instances/machines/machine-keeper.ts';
import type { MetadCalls } from '../../net/metad-link/metad-client.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { type Handlers, Reply } from './handlers.ts';

export interface ChannelRoutesDependencies {
  readonly instances: Pick<InstanceRepository, 'findByName' | 'expandName'>;
  readonly keeper: Pick<MachineKeeper, 'get'>;
  readonly metad: Pick<
    MetadCalls,
    'replaceTokens' | 'tree' | 'readQueue' | 'writeQueue' | 'connect'
  >;
}

/** Implements the channel and the serial console of a running instance. */
export function channelRoutes(
  dependencies: ChannelRoutesDependencies,
): Handlers<typeof channelEndpoints & typeof channelStreamEndpoints> {
  const { metad } = dependencies;
  const find = (name: string): Promise<string> => findOnChannel(name, dependencies);
  return {
    'DELETE /v1/instances/{name}/tokens': async ({ params }) =>
      metad.replaceTokens(await find(params.name)),
    'GET /v1/instances/{name}/metadata/{*path}': async ({ params, query }) => {
      const { status, contentType, body } = await metad.tree(
        await find(params.name),
        params.path,
        query.partial !== undefined,
      );
      return new Reply(status, body, { type: contentType });
    },
    'GET /v1/instances/{name}/queue': async ({ params, query, signal }) => {
      const { offset, wait: waitS } = query;
      const read = await metad.readQueue(await find(params.name), { signal, offset, waitS });
      if (read === null) return new Reply(204);
      const headers = { [OFFSET_HEADER]: String(read.nextOffset) };
      return new Reply(200, read.bytes, { headers });
    },
    'POST /v1/instances/{name}/queue': async ({ params, body }) =>
      metad.writeQueue(await find(params.name), body),
    'GET /v1/instances/{name}/connect/{port}': async ({ name, port: text }) => {
      const port = parsePort(text);
      return metad.connect(await find(name), port);
    },
    'GET /v1/instances/{name}/console': async ({ name }) =>
      connectUnix((await findRunning(name, dependencies)).kept.machine.consoleSocket),
  };
}

/**
 * Returns the UUID of a running instance with a channel.
 * @throws AppError INSTANCE_NOT_FOUND, INSTANCE_STATE
 */
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
