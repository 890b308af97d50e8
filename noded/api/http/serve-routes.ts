import { Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context } from 'koa';
import { z } from 'zod';
import { BUILD_HEADER, buildId } from '#shared/build/build-id.ts';
import { isUpgrade } from '#shared/contract/endpoint.ts';
import { listEndpoints, type ListedEndpoint } from '#shared/contract/endpoints.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { type ApiHandlers, type Asked, type RemoteUser, Reply } from './handlers.ts';
import { notForPeers, parseInput } from './http-errors.ts';
import { readBody, readJson } from './read-body.ts';
import { untilGone } from './until-gone.ts';

/** The node at the other end of a connection. */
export type Askers = Pick<WeakMap<object, string>, 'get'>;

/**
 * Creates a router for the table of endpoints. The endpoint's schemas check the JSON of requests
 * and answers.
 * @param askers for connections from other nodes, which get only the endpoints for peers
 */
export function createApiRouter(handlers: ApiHandlers, askers?: Askers): Router {
  const router = new Router();
  for (const endpoint of listEndpoints()) {
    if (isUpgrade(endpoint)) continue;
    const { key, method, path, forPeers = false } = endpoint;
    // The endpoint's own schemas parsed the request for its handler.
    const handle = handlers[key] as (asked: Asked<string, ListedEndpoint>) => unknown;
    router.register(koaPath(path), [method], async (context) => {
      const from = askers && askerOf(context.req.socket, askers);
      if (from !== undefined && !forPeers) throw notForPeers(key);
      answer(context, endpoint, await handle({ ...(await readRequest(context, endpoint)), from }));
    });
  }
  return router;
}

function askerOf(connection: object, askers: Askers): string {
  const from = askers.get(connection);
  if (from === undefined) throw new Error('a connection of another node has no name');
  return from;
}

/** Returns the path in the router's syntax: `:name`, and `{/*path}` for an optional rest. */
function koaPath(path: string): string {
  return path.replace(/\/\{\*(\w+)\}/g, '{/*$1}').replace(/\{(\w+)\}/g, ':$1');
}

async function readRequest(
  context: Context & { readonly params: Readonly<Record<string, string>> },
  { path, query, request }: ListedEndpoint,
): Promise<Omit<Asked<string, ListedEndpoint>, 'from'>> {
  const { params } = context;
  const rest = /\{\*(\w+)\}/.exec(path)?.[1];
  return {
    params: rest === undefined ? params : { ...params, [rest]: ownValue(params, rest) ?? '' },
    query: query && parseInput(query, { ...context.query }),
    body: (await readRequestBody(context, request)) as never,
    user: context.state['user'] as RemoteUser | undefined,
    lastEventId: context.get('last-event-id') || undefined,
    signal: untilGone(context.res),
  };
}

async function readRequestBody(
  context: Context,
  request: ListedEndpoint['request'],
): Promise<unknown> {
  if (request === undefined) return undefined;
  if (request instanceof z.ZodType) return parseInput(request, await readJson(context.req));
  return readBody(context.req, request.maxBytes);
}

function answer(context: Context, { answers }: ListedEndpoint, outcome: unknown): void {
  const reply = outcome instanceof Reply ? outcome : new Reply(200 in answers ? 200 : 204, outcome);
  const { status, body } = reply;
  const { type, headers = {} } = reply.options;
  const declared = answers[status];
  context.status = status;
  context.set({ ...headers, ...(buildId !== null && { [BUILD_HEADER]: buildId }) });
  if (declared instanceof z.ZodType && body instanceof Readable) {
    // A handler that streams JSON has checked each piece.
    context.type = type ?? 'application/json';
    context.body = body;
  } else if (declared instanceof z.ZodType) {
    // Removes values that the schema does not name.
    context.body = declared.parse(body);
  } else if (body !== undefined) {
    context.type = type ?? declared?.type ?? 'application/octet-stream';
    context.body = body;
  }
}
