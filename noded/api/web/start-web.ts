import { createServer } from 'node:https';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { every } from '#shared/clock/every.ts';
import { networkOf } from '#shared/socket/network-of.ts';
import { ensureCertificate } from '../rapi/certificate.ts';
import { listen, type Listening } from '../rapi/listen.ts';
import type { LoginLimit } from '../rapi/login-limit.ts';
import { UsersFile } from '../rapi/users-file.ts';
import { logIn } from './log-in.ts';
import { loadPage } from './page.ts';
import { serveConsoles } from './serve-console.ts';
import { cookieName } from './session-cookie.ts';
import { Sessions } from './sessions.ts';
import { createWebApp, type Entrance, SERVER_TIMES, type WebParts } from './web-app.ts';
import type { WebSettings } from './web-settings.ts';

/** With and without a session. A browser opens about six connections for each open page. */
const MAX_CONNECTIONS = 1024;
/** Limit for each IPv4 address or IPv6 /64. */
const MAX_NETWORK_CONNECTIONS = 128;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Time for the whole request, its body included. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Node's default of 30 seconds would prolong the timeouts. */
const CHECK_TIMEOUTS_MS = 1000;
const IDLE_MS = 30 * 60_000;
const TOTAL_MS = 12 * 3_600_000;
/** Delay in which streams of a user who has lost a right end. Requests are refused at once. */
const CHECK_SESSIONS_MS = 5000;

export interface WebServing extends Omit<WebParts, 'page'> {
  readonly clock: Clock;
  readonly limit: LoginLimit;
}

/**
 * Serves the page over TLS, with the users of a file.
 * @throws AppError FILE_UNREADABLE for the certificate, CONFLICT if it cannot listen on the address
 */
export async function startWeb(settings: WebSettings, serving: WebServing): Promise<Listening> {
  const { nodeName, logger, clock, limit } = serving;
  const users = new UsersFile(settings.usersFile, logger);
  await users.refresh();
  const pem = await ensureCertificate(
    { file: settings.certificateFile, option: '--web-certificate' },
    nodeName,
    logger,
  );
  const sessions = new Sessions(clock, { idleMs: IDLE_MS, totalMs: TOTAL_MS });
  const cookie = cookieName(null);
  const entrance: Entrance = {
    ...{ isTls: true, hostName: null, cookie, sessions },
    login: logIn({ users, limit, sessions, cookie, logger }),
    isCurrent: ({ user }) => users.isCurrent(user),
  };
  const parts = { ...serving, page: await loadPage() };
  const handle = createWebApp(parts, entrance);
  const server = createServer(
    {
      ...{ key: pem, cert: pem, minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_TIMEOUT_MS },
      ...{ ...SERVER_TIMES, requestTimeout: REQUEST_TIMEOUT_MS },
      connectionsCheckingInterval: CHECK_TIMEOUTS_MS,
    },
    (request, response) => void handle(request, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  const slots = new InstanceSlots(MAX_NETWORK_CONNECTIONS);
  server.on('connection', (socket) => {
    const giveBack = slots.take(networkOf(socket.remoteAddress ?? ''));
    if (giveBack === undefined) socket.destroy();
    else socket.once('close', giveBack);
  });
  await using undo = new AsyncDisposableStack();
  const listening = undo.use(await listen(server, '--web', settings));
  undo.use(serveConsoles(server, parts, entrance));
  undo.use(every(CHECK_SESSIONS_MS, () => sessions.endUnless(entrance.isCurrent)));
  undo.defer(() => sessions.endAll());
  logger.info('web.ready', { host: settings.host, port: listening.port });
  const all = undo.move();
  return { port: listening.port, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
