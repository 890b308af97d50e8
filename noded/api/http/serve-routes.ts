import { Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context } from 'koa';
import { z } from 'zod';
import { BUILD_HEADER, buildId } from '#shared/build/build-id.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { AnyApiRoute, ApiRequest, Reply } from './api-route.ts';
import { parseInput } from './http-errors.ts';
import { readBody, readJson } from './read-body.ts';
import { untilGone } from './until-gone.ts';

/** The other node that a connection comes from, by connection. */
export type Askers = Pick<WeakMap<object, string>, 'get'>;

/**
 * Answers each route of the table. What comes in and what goes out as JSON passes the route's
 * schemas.
 */
export function createApiRouter(
  routes: readonly AnyApiRoute[],
  askers: Askers = new WeakMap(),
): Router {
  const router = new Router();
  for (const route of routes) {
    router.register(koaPath(route.path), [route.method], async (context) => {
      const { params } = context;
      const from = askers.get(context.req.socket);
      const request = { ...(await readRequest(context, route, params)), from };
      answer(context, route, await route.handle(request));
    });
  }
  return router;
}

/** The path as the router writes it: `:name`, and `{/*path}` for a rest that may be missing. */
function koaPath(path: string): string {
  return path.replace(/\/\{\*(\w+)\}/g, '{/*$1}').replace(/\{(\w+)\}/g, ':$1');
}

async function readRequest(
  context: Context,
  { path, query, request }: AnyApiRoute,
  params: Readonly<Record<string, string>>,
): Promise<Omit<ApiRequest<string, unknown, unknown>, 'from'>> {
  const rest = /\{\*(\w+)\}/.exec(path)?.[1];
  return {
    params: rest === undefined ? params : { ...params, [rest]: ownValue(params, rest) ?? '' },
    query: query && parseInput(query, { ...context.query }),
    body: await readRequestBody(context, request),
    signal: untilGone(context.res),
  };
}

async function readRequestBody(
  context: Context,
  request: AnyApiRoute['request'],
): Promise<unknown> {
  if (request === undefined) return undefined;
  if (request instanceof z.ZodType) return parseInput(request, await readJson(context.req));
  return readBody(context.req, request.maxBytes);
}

function answer(context: Context, { answers }: AnyApiRoute, reply: Reply): void {
  const { status, body, type, headers = {} } = reply;
  const declared = answers[status];
  context.status = status;
  context.set({ ...headers, ...(buildId !== null && { [BUILD_HEADER]: buildId }) });
  if (declared instanceof z.ZodType && body instanceof Readable) {
    // Whoever writes JSON piece by piece has made sure of each.
    context.type = type ?? 'application/json';
    context.body = body;
  } else if (declared instanceof z.ZodType) {
    // What a schema does not name is not told.
    context.body = declared.parse(body);
  } else if (body !== undefined) {
    context.type = type ?? declared?.type ?? 'application/octet-stream';
    context.body = body;
  }
}
