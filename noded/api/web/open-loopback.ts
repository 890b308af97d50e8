import { createServer } from 'node:http';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Context, Middleware, Next } from 'koa';
import type { Clock } from '#shared/clock/clock.ts';
import type { WebLink } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { listen } from '../rapi/listen.ts';
import { loadPage } from './page.ts';
import { ROOT } from './require-access.ts';
import { serveConsoles } from './serve-console.ts';
import { cookieName, formatCookie } from './session-cookie.ts';
import { newToken, Sessions } from './sessions.ts';
import { createWebApp, SERVER_TIMES, type WebParts } from './web-app.ts';

const ADDRESS = '127.0.0.1';
/** A browser opens about six connections for each open page. */
const MAX_CONNECTIONS = 128;

export interface LoopbackParts extends Omit<WebParts, 'page'> {
  readonly clock: Clock;
}

/**
 * Serves the page on a loopback port until the signal aborts. Its users have the rights of root.
 * @param port 0: any free port
 * @returns one WebLink per line: an address with a token that works once, and the next one after
 * each use
 * @throws AppError CONFLICT
 */
export async function openLoopback(
  port: number,
  signal: AbortSignal,
  parts: LoopbackParts,
): Promise<Readable> {
  const { clock, logger } = parts;
  const sessions = new Sessions(clock, null);
  const server = createServer({ ...SERVER_TIMES, requestTimeout: 0 });
  server.maxConnections = MAX_CONNECTIONS;
  const listening = await listen(server, '--port', { host: ADDRESS, port });
  const hostName = newHostName();
  const links = new Readable({ read: () => undefined });
  const own = listening.port;
  let token = '';
  const renew = (): void => {
    token = newToken();
    const link: WebLink = { url: `http://${hostName}:${own}/?token=${token}` };
    links.push(`${JSON.stringify(link)}\n`);
  };
  const exchange: Middleware = async (context: Context, next: Next) => {
    const given = context.method === 'GET' && context.path === '/' ? context.query['token'] : '';
    if (typeof given !== 'string' || given === '') {
      await next();
      return;
    }
    if (!isSame(given, token)) throw usedToken();
    context.set('Set-Cookie', formatCookie(cookieName(own), sessions.begin(ROOT).id));
    // The token stays in neither the address bar nor the history.
    context.redirect('/');
    context.status = 303;
    renew();
  };
  const entrance = {
    ...{ isTls: false, hostName, cookie: cookieName(own), sessions, login: exchange },
    isCurrent: () => Promise.resolve(true),
  };
  const all = { ...parts, page: await loadPage() };
  const handle = createWebApp(all, entrance);
  server.on('request', (request, response) => void handle(request, response));
  const consoles = serveConsoles(server, all, entrance);
  renew();
  const close = (): void => {
    sessions.endAll();
    links.push(null);
    consoles[Symbol.dispose]();
    void listening[Symbol.asyncDispose]();
    logger.info('web.closed', { port: own });
  };
  if (signal.aborted) close();
  else signal.addEventListener('abort', close, { once: true });
  logger.info('web.opened', { host: ADDRESS, port: own });
  return links;
}

/**
 * Returns a name that browsers resolve to this host (RFC 6761, 6.3). They send a cookie to every
 * port of its host name, so a name that other local users cannot guess keeps it from their servers.
 */
function newHostName(): string {
  return `gnt-${randomBytes(8).toString('hex')}.localhost`;
}

function isSame(given: string, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

function usedToken(): AppError {
  return new AppError('LOGIN_FAILED', 'this address was used already', {
    hint: 'Open the newest address that gnt-cluster web printed.',
  });
}
