import { Readable } from 'node:stream';
import type Router from '@koa/router';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { installLogPath, readInstallLog } from '../host/install-log.ts';
import type { ApiDependencies } from './api-dependencies.ts';
import { readBody } from './read-body.ts';

/** Longest wait for bytes of the channel that one request may ask for, in seconds. */
const MAX_WAIT_S = 60;
/** One message of the channel; contract's limit of a guest's write too. */
const MAX_MESSAGE_BYTES = 64 * 1024;

export function addInstanceRoutes(router: Router, dependencies: ApiDependencies): void {
  const { instances, metad, paths } = dependencies;
  const find = (name: string | undefined): Promise<InstanceRecord> =>
    instances.findByName(name ?? '');

  router.get('/v1/instances', async (context) => {
    context.body = await dependencies.overview.instances();
  });
  router.get('/v1/instances/:name', async (context) => {
    context.body = await dependencies.overview.instance(context.params['name'] ?? '');
  });
  router.get('/v1/instances/:name/log', async (context) => {
    const { uuid, name, install } = await find(context.params['name']);
    if (install === null) {
      throw new AppError('NOT_FOUND', `instance '${name}' was never installed, so there is no log`);
    }
    const controller = new AbortController();
    context.res.once('close', () => controller.abort());
    const isOngoing = async (): Promise<boolean> =>
      context.query['follow'] === '1' &&
      (await instances.findByUuid(uuid))?.installState === 'installing';
    context.type = 'text/plain; charset=utf-8';
    context.body = Readable.from(
      openLog(readInstallLog(installLogPath(paths.logDir, uuid), isOngoing, controller.signal)),
    );
  });
  router.get('/v1/instances/:name/disks', async (context) => {
    const instance = await find(context.params['name']);
    if (instance.installState === 'installing') {
      throw new AppError(
        'INSTANCE_STATE',
        `instance '${instance.name}' is being installed, its disks are in use`,
        { hint: `wait for it: gnt-job watch ${instance.install?.jobId ?? 'ID'}` },
      );
    }
    context.body = await dependencies.disks.activate(instance);
  });
  router.delete('/v1/instances/:name/tokens', async (context) => {
    const { uuid, name } = await find(context.params['name']);
    requireChannel(name, uuid, dependencies);
    await metad.replaceTokens(uuid);
    context.status = 204;
  });
  router.get('/v1/instances/:name/metadata{/*path}', async (context) => {
    const { uuid, name } = await find(context.params['name']);
    requireChannel(name, uuid, dependencies);
    const answer = await metad.tree(uuid, context.params['path'] ?? '');
    context.status = answer.status;
    context.type = answer.contentType;
    context.body = answer.body;
  });
  router.get('/v1/instances/:name/queue', async (context) => {
    const { uuid, name } = await find(context.params['name']);
    requireChannel(name, uuid, dependencies);
    const offset = parseNumber(context.query['offset'], 'offset', Number.MAX_SAFE_INTEGER);
    const waitS = parseNumber(context.query['wait'], 'wait', MAX_WAIT_S);
    const controller = new AbortController();
    context.res.once('close', () => controller.abort());
    const read = await metad.readQueue(uuid, {
      signal: controller.signal,
      ...(offset !== undefined && { offset }),
      ...(waitS !== undefined && { waitS }),
    });
    if (read === null) {
      context.status = 204;
      return;
    }
    context.set('X-Gnt-Offset', String(read.nextOffset));
    context.type = 'application/octet-stream';
    context.body = read.bytes;
  });
  router.post('/v1/instances/:name/queue', async (context) => {
    const { uuid, name } = await find(context.params['name']);
    requireChannel(name, uuid, dependencies);
    await metad.writeQueue(uuid, await readBody(context.req, MAX_MESSAGE_BYTES));
    context.status = 204;
  });
}

function requireChannel(name: string, uuid: string, { keeper }: ApiDependencies): void {
  const kept = keeper.get(uuid);
  if (kept === undefined) {
    throw new AppError(
      'INSTANCE_STATE',
      `instance '${name}' is not running, so its channel is closed`,
      {
        hint: `gnt-instance startup ${name}`,
      },
    );
  }
  if (kept.device === null) {
    throw new AppError('INSTANCE_STATE', `the channel of instance '${name}' is off`, {
      hint: `gnt-instance modify --communication yes ${name}, then gnt-instance reboot ${name}`,
    });
  }
}

function parseNumber(
  text: string | string[] | undefined,
  name: string,
  max: number,
): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new AppError('VALIDATION', `${name}: expected a whole number from 0 to ${max}`);
}

async function* openLog(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    // Removed with its instance while it was followed.
  }
}
