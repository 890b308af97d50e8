import type { IncomingMessage } from 'node:http';
import Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import Koa from 'koa';
import { guestState } from '#shared/contract/guest-handover.ts';
import { LOST_SECRETS_HEADER, type MetadStatus } from '#shared/contract/metad-control.ts';
import { AppError, isAppError, tellableMessage } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { reveal } from '#shared/secret/secret.ts';
import type { Logger } from '#shared/log/log.ts';
import type { EventLog } from '../channel/event-log.ts';
import type { Instance } from '../channel/instance.ts';
import type { InstanceDirectory } from '../channel/registry.ts';
import { resolveAddress } from '../dialects/address.ts';
import { readBody } from '../http/request-body.ts';
import { parseRequestTarget } from '../http/request-target.ts';
import { wholeOrPartial } from '../http/serve-content.ts';
import { serveQueueRead, serveQueueWrite } from '../http/serve-queue.ts';
import { MAX_VIEW_BYTES } from '../config/limits.ts';
import { lostSecrets } from '../view/lost-secrets.ts';
import { parseView } from '../view/served-view.ts';
import { streamEvents } from './event-stream.ts';
import type { Metrics } from './metrics.ts';

export interface ControlOptions {
  readonly registry: InstanceDirectory;
  readonly events: EventLog;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly startedAtMs: number;
}

const STATUS_OF: Partial<Record<ErrorCode, number>> = {
  VALIDATION: 400,
  NOT_FOUND: 404,
  INSTANCE_NOT_FOUND: 404,
  CONFLICT: 409,
  NOT_SUPPORTED: 405,
  NETWORK_SETUP: 503,
  GUEST_UNREACHABLE: 502,
};

/** Serves the API of shared/contract/metad-control.ts to the node daemon. */
export function createControlApp(options: ControlOptions): Koa {
  const app = new Koa();
  app.silent = true;
  app.use(async (context, next) => {
    try {
      await next();
    } catch (error) {
      answerError(context, error, options.logger);
    }
  });
  const router = new Router();
  addStatusRoutes(router, options);
  addInstanceRoutes(router, options);
  addQueueRoutes(router, options);
  app.use(router.routes()).use(router.allowedMethods());
  return app;
}

export function describeError(error: unknown): { readonly status: number; readonly body: object } {
  if (!isAppError(error)) {
    return { status: 500, body: { code: 'INTERNAL', message: tellableMessage(error) } };
  }
  const { code, message, details, hint } = error;
  return { status: STATUS_OF[code] ?? 500, body: { code, message, details, hint } };
}

export function instanceOf(registry: InstanceDirectory, uuid: string | undefined): Instance {
  const instance = uuid === undefined ? undefined : registry.get(uuid);
  if (instance) return instance;
  throw new AppError('INSTANCE_NOT_FOUND', `metad serves no instance ${uuid ?? ''}`);
}

function answerError(context: Koa.Context, error: unknown, logger: Logger): void {
  const { status, body } = describeError(error);
  logger.warn('control.refused', { method: context.method, path: context.path, status });
  context.status = status;
  context.body = body;
}

function addStatusRoutes(
  router: Router,
  { registry, events, metrics, startedAtMs }: ControlOptions,
): void {
  router.get('/v1/status', (context) => {
    const status: MetadStatus = {
      pid: process.pid,
      protocol: 1,
      startedAtMs,
      lastSequence: events.lastSequence,
      instances: registry.instances().map(({ view }) => ({
        uuid: view.uuid,
        revision: view.revision,
        device: view.channel.device,
        mode: view.mode,
      })),
    };
    context.body = status;
  });
  router.get('/v1/events', (context) => {
    const text = context.URL.searchParams.get('after') ?? '0';
    if (!/^\d{1,16}$/.test(text)) throw new AppError('VALIDATION', 'after: not a sequence number');
    context.respond = false;
    streamEvents(context.res, events, Number(text));
  });
  router.get('/metrics', async (context) => {
    context.type = metrics.contentType;
    context.body = await metrics.render();
  });
}

function addInstanceRoutes(router: Router, { registry, logger }: ControlOptions): void {
  router.put('/v1/instances/:uuid', async (context) => {
    const view = parseView(await readJson(context.req, 'view'));
    if (view.uuid !== context.params.uuid) {
      throw new AppError('VALIDATION', 'malformed view: uuid: differs from the path');
    }
    await registry.put(view, { isGuestUp: context.URL.searchParams.get('guest') === 'up' });
    logger.info('view.served', {
      instance: view.name,
      revision: view.revision,
      mode: view.mode,
      device: view.channel.device,
    });
    const lost = lostSecrets(registry.get(view.uuid)?.view ?? view);
    if (lost.length > 0) context.set(LOST_SECRETS_HEADER, lost.join(','));
    context.status = 204;
  });
  router.delete('/v1/instances/:uuid', async (context) => {
    const { uuid } = context.params;
    const name = uuid === undefined ? undefined : registry.get(uuid)?.view.name;
    if (uuid !== undefined) await registry.remove(uuid);
    if (name !== undefined) logger.info('view.removed', { instance: name });
    context.status = 204;
  });
  router.delete('/v1/instances/:uuid/tokens', (context) => {
    const instance = instanceOf(registry, context.params.uuid);
    instance.replaceTokens();
    logger.info('tokens.replaced', { instance: instance.view.name });
    context.status = 204;
  });
  router.get('/v1/instances/:uuid/secrets', (context) => {
    const { view } = instanceOf(registry, context.params.uuid);
    logger.info('secrets.handed-over', { instance: view.name });
    context.body = Object.fromEntries(
      [...view.osParameters].flatMap(([name, { value, visibility }]) =>
        visibility === 'secret' && value !== null ? [[name, reveal(value)]] : [],
      ),
    );
  });
  router.post('/v1/instances/:uuid/leave', (context) => {
    const instance = instanceOf(registry, context.params.uuid);
    context.body = instance.leave();
    logger.info('guest.leaves', { instance: instance.view.name });
  });
  router.delete('/v1/instances/:uuid/leave', (context) => {
    instanceOf(registry, context.params.uuid).stay();
    context.status = 204;
  });
  router.put('/v1/instances/:uuid/arrive', async (context) => {
    const instance = instanceOf(registry, context.params.uuid);
    instance.arrive(guestState.parse(await readJson(context.req, 'handover')));
    logger.info('guest.arrives', { instance: instance.view.name });
    context.status = 204;
  });
  router.get(['/v1/instances/:uuid/tree', '/v1/instances/:uuid/tree/{*path}'], (context) => {
    showTree(context, instanceOf(registry, context.params.uuid));
  });
}

async function readJson(request: IncomingMessage, what: string): Promise<unknown> {
  const body = await readBody(request, MAX_VIEW_BYTES);
  if (body.kind !== 'complete') {
    throw new AppError('VALIDATION', `malformed ${what}: more than ${MAX_VIEW_BYTES} bytes`);
  }
  const value = parseJson(body.bytes);
  if (value === undefined)
    throw new AppError('VALIDATION', `malformed ${what}: (top level): not JSON`);
  return value;
}

function showTree(context: RouterContext, instance: Instance): void {
  const raw = context.path.replace(/^\/v1\/instances\/[^/]*\/tree/, '');
  const target = parseRequestTarget(raw === '' ? '/' : raw);
  const address = target && resolveAddress(target.path);
  const found = address && instance.findRedacted(address);
  if (!found) throw new AppError('NOT_FOUND', `${instance.view.name} has no content at ${raw}`);
  if (found.kind === 'live') {
    context.type = 'text/plain';
    context.body = `<${found.source}: streamed to the guest on request>\n`;
    return;
  }
  const resource = wholeOrPartial(found, context.URL.searchParams);
  context.status = resource.status;
  for (let index = 0; index < resource.headers.length; index += 2) {
    context.set(resource.headers[index] ?? '', resource.headers[index + 1] ?? '');
  }
  context.body = resource.body;
}

function addQueueRoutes(router: Router, { registry }: ControlOptions): void {
  router.get('/v1/instances/:uuid/queue', async (context) => {
    const { toHost } = instanceOf(registry, context.params.uuid);
    context.respond = false;
    await serveQueueRead(toHost, context.res, context.URL.searchParams);
  });
  router.post('/v1/instances/:uuid/queue', async (context) => {
    const { toGuest } = instanceOf(registry, context.params.uuid);
    context.respond = false;
    await serveQueueWrite(toGuest, context.req, context.res);
  });
}
