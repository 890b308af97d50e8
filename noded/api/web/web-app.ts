import type { IncomingMessage } from 'node:http';
import Koa, { type Context, type Middleware, type Next } from 'koa';
import type { WebSession } from '#shared/contract/api.ts';
import type { ListedEndpoint } from '#shared/contract/endpoints.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { InstanceRepository } from '../../records/instance-repository.ts';
import { type ServedApi, useApi } from '../http/api-server.ts';
import { answerErrors } from '../http/http-errors.ts';
import { secureAnswers, setPageHeaders } from './answer-headers.ts';
import { findEndpoint } from './find-endpoint.ts';
import { type Page, servePage } from './page.ts';
import { requireLoopbackName, requireSameOrigin } from './request-origin.ts';
import { requireAccess, requireCsrf, requireInstance, ROOT } from './require-access.ts';
import { formatCookie, readCookie } from './session-cookie.ts';
import type { Session, Sessions } from './sessions.ts';
import { watchRights } from './watch-rights.ts';

/** Requests that the page sends by itself, such as after an event, do not prolong the session. */
const BACKGROUND_HEADER = 'x-gnt-background';
const EVENTS = 'GET /v1/events';

/**
 * Times of the web's servers. With node's 5 s, tabs that ask rarely meet connections that are just
 * being closed.
 */
export const SERVER_TIMES = { headersTimeout: 10_000, keepAliveTimeout: 75_000 } as const;

export interface WebParts extends ServedApi {
  readonly page: Page;
  readonly nodeName: string;
  readonly version: string;
  /** The node's own socket, which opens consoles on every node. */
  readonly socketPath: string;
  readonly instances: Pick<InstanceRepository, 'findByName'>;
}

/** Differences between the loopback port and the permanent address. */
export interface Entrance {
  readonly isTls: boolean;
  /** The only host name of the loopback port; null: any name, which the certificate judges. */
  readonly hostName: string | null;
  readonly cookie: string;
  readonly sessions: Sessions;
  /** Answers the requests that begin a session. */
  readonly login: Middleware;
  /** Returns whether the user of the session still has its rights. */
  readonly isCurrent: (session: Session) => Promise<boolean>;
}

/** Creates the handler of a web server: login, the page, and the API for users of a session. */
export function createWebApp(parts: WebParts, entrance: Entrance): ReturnType<Koa['callback']> {
  const app = new Koa();
  app.silent = true;
  app.use(secureAnswers(entrance.isTls));
  app.use(answerErrors(parts.logger));
  app.use(requireOwnHost(entrance));
  app.use(entrance.login);
  app.use(serveSession(parts, entrance));
  app.use(servePages(parts.page));
  app.use(admit(entrance, parts));
  useApi(app, parts);
  return app.callback();
}

/**
 * Returns the session of a request.
 * @throws AppError LOGIN_REQUIRED, or NOT_ALLOWED for a request of another site
 */
export async function requireSession(
  request: IncomingMessage,
  { isTls, cookie, sessions, isCurrent }: Entrance,
): Promise<Session> {
  requireSameOrigin(request, isTls);
  const session = sessions.find(readCookie(request, cookie) ?? '');
  if (session !== undefined && (await isCurrent(session))) return session;
  if (session !== undefined) sessions.end(session);
  throw noSession({ isTls });
}

function noSession({ isTls }: Pick<Entrance, 'isTls'>): AppError {
  return new AppError('LOGIN_REQUIRED', 'there is no session, or it has ended', {
    hint: isTls ? 'Log in again.' : 'Open the newest address that gnt-cluster web printed.',
  });
}

function requireOwnHost({ hostName }: Entrance): Middleware {
  return async (context: Context, next: Next) => {
    if (hostName !== null) requireLoopbackName(context.req, hostName);
    await next();
  };
}

function serveSession({ nodeName, version }: WebParts, entrance: Entrance): Middleware {
  return async (context: Context, next: Next) => {
    if (context.path === '/session' && context.method === 'GET') {
      const session = await requireSession(context.req, entrance);
      markUse(context, session, entrance);
      const { user, csrf } = session;
      context.body = {
        user: user.name,
        role: user.role,
        isBound: user.scope !== null,
        csrf,
        node: nodeName,
        version,
      } satisfies WebSession;
    } else if (context.path === '/logout' && context.method === 'POST') {
      const session = await requireSession(context.req, entrance);
      requireCsrf(context.req, session);
      entrance.sessions.end(session);
      context.set('Set-Cookie', formatCookie(entrance.cookie, ''));
      context.status = 204;
    } else await next();
  };
}

function servePages(page: Page): Middleware {
  return async (context: Context, next: Next) => {
    const isRead = context.method === 'GET' || context.method === 'HEAD';
    const isApi = /^\/(?:v1|metrics|session|login|logout)(?:\/|$)/.test(context.path);
    if (!isRead || isApi || !servePage(context, page)) await next();
    else setPageHeaders(context);
  };
}

export interface Admission {
  readonly session: Session;
  readonly endpoint: ListedEndpoint;
  /** The instance whose users may call the endpoint; null: it is not about one instance. */
  readonly instance: string | null;
}

/**
 * Returns the session and the endpoint of a request if its user may call it.
 * @throws AppError LOGIN_REQUIRED, NOT_ALLOWED, NOT_FOUND, INSTANCE_NOT_FOUND
 */
export async function admitRequest(
  request: IncomingMessage,
  entrance: Entrance,
  { instances }: Pick<WebParts, 'instances'>,
): Promise<Admission> {
  if (entrance.hostName !== null) requireLoopbackName(request, entrance.hostName);
  const session = await requireSession(request, entrance);
  requireCsrf(request, session);
  const { method = 'GET', url = '' } = request;
  const [path = ''] = url.split('?');
  const found = findEndpoint(method, path);
  if (found === undefined) throw new AppError('NOT_FOUND', `this API has no ${method} ${path}`);
  const { endpoint, name } = found;
  requireAccess(session.user, endpoint);
  const instance = endpoint.access === 'instance' ? (name ?? '') : null;
  if (instance !== null) await requireInstance(session.user, instance, instances);
  return { session, endpoint, instance };
}

/** Prolongs the session, unless the page sent the request by itself. */
function markUse(context: Context, session: Session, { sessions }: Entrance): void {
  if (context.get(BACKGROUND_HEADER) === '') sessions.use(session);
}

/** Lets a request pass to the API if its session may call the endpoint. */
function admit(entrance: Entrance, parts: WebParts): Middleware {
  return async (context: Context, next: Next) => {
    const { session, endpoint, instance } = await admitRequest(context.req, entrance, parts);
    // The handlers of the API have no user for root.
    if (session.user !== ROOT) context.state['user'] = session.user;
    if (endpoint.key !== EVENTS) markUse(context, session, entrance);
    const rights = watchRights(session, instance, parts.instances);
    const end = (): void => void context.req.socket.destroy();
    rights.signal.addEventListener('abort', end);
    context.res.once('close', () => {
      rights.signal.removeEventListener('abort', end);
      rights[Symbol.dispose]();
    });
    // The session may have ended while the instance was looked up.
    if (session.signal.aborted) throw noSession(entrance);
    await next();
  };
}
