import { createServer } from 'node:https';
import Router from '@koa/router';
import Koa, { type Next, type ParameterizedContext } from 'koa';
import type { Logger } from '#shared/log/log.ts';
import type { Overview } from '../../cluster/membership/overview.ts';
import type { JobService } from '../../jobs/job-service.ts';
import { bootContentRoutes, type RapiBootDependencies } from './rapi-boot-routes.ts';
import { ensureCertificate } from './certificate.ts';
import { clusterRoutes, type RapiClusterDependencies } from './rapi-cluster-routes.ts';
import { instanceRoutes } from './rapi-instance-routes.ts';
import { jobRoutes } from './rapi-job-routes.ts';
import { listen, type Listening } from './listen.ts';
import type { LoginLimit } from './login-limit.ts';
import { networkRoutes, type RapiNetworkDependencies } from './rapi-network-routes.ts';
import { nodeRoutes, type RapiNodeDependencies } from './rapi-node-routes.ts';
import { queryRoutes } from './query-routes.ts';
import { refusedRoutes } from './refused-resources.ts';
import { describeFailure, RapiFailure, toRapiFailure } from './rapi-failure.ts';
import { addRapiRoutes, createSubmit, type RapiRoute, type RapiState } from './rapi-route.ts';
import { createVisible } from './visible.ts';
import type { RapiSettings } from './rapi-settings.ts';
import { REALM, UsersFile, type RapiUser } from './users-file.ts';

/** Bounds for clients without a password: connections and time. */
const MAX_CONNECTIONS = 128;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 10_000;
/** Time for the whole request, its body included. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Paths without a login: they show that this is a remote API, and its version. */
const PUBLIC_PATHS: ReadonlySet<string> = new Set(['/', '/version']);

/** The dependencies of all groups of resources. */
export type RapiDependencies = Omit<
  RapiClusterDependencies & RapiNodeDependencies & RapiBootDependencies & RapiNetworkDependencies,
  'submit'
> & {
  readonly overview: Overview;
  readonly jobs: JobService;
};

/** Returns every resource of the remote API. */
export function createRapiRoutes(dependencies: RapiDependencies): readonly RapiRoute[] {
  const submit = createSubmit(dependencies.jobs, dependencies.clusters);
  const all = { ...dependencies, submit, visible: createVisible(dependencies) };
  return [
    ...clusterRoutes(all),
    ...nodeRoutes(all),
    ...instanceRoutes(all),
    ...bootContentRoutes(all),
    ...networkRoutes(all),
    ...jobRoutes(all),
    ...queryRoutes(all),
    ...refusedRoutes(),
  ];
}

export interface RapiServing {
  readonly routes: readonly RapiRoute[];
  /** The name in a new certificate. */
  readonly nodeName: string;
  readonly logger: Logger;
  /** Shared by all interfaces with the same users. */
  readonly limit: LoginLimit;
  /** Counts the answer in the metrics. */
  readonly onAnswered: (method: string, status: number) => void;
}

/**
 * Serves version 2 of Ganeti's remote API. Its resources become opcodes for the same jobs, and its
 * answers come from the same records as the node's own API.
 * @throws AppError FILE_UNREADABLE for the certificate, CONFLICT if it cannot listen on the address
 */
export async function startRapi(
  settings: RapiSettings,
  { routes, nodeName, logger, limit, onAnswered }: RapiServing,
): Promise<Listening> {
  const users = new UsersFile(settings.usersFile, logger);
  await users.refresh();
  const pem = await ensureCertificate(
    { file: settings.certificateFile, option: '--rapi-certificate' },
    nodeName,
    logger,
  );
  const app = new Koa<RapiState>();
  app.silent = true;
  app.use(answerFailures(logger, onAnswered));
  app.use(authenticate(users, limit, logger));
  const router = new Router<RapiState>({ sensitive: true, strict: true });
  addRapiRoutes(router, routes);
  app.use(router.routes());
  app.use((context) => {
    const isKnown = router.match(context.path, context.method).path.length > 0;
    if (!isKnown) throw new RapiFailure(404, `this API has no ${context.path}`);
    throw new RapiFailure(501, `Method ${context.method} is unsupported for path ${context.path}`);
  });
  const handle = app.callback();
  const server = createServer(
    {
      key: pem,
      cert: pem,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
    },
    (request, response) => void handle(request, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  const listening = await listen(server, '--rapi', settings);
  logger.info('rapi.ready', { host: settings.host, port: listening.port });
  return listening;
}

/** Answers failures, and logs the user and the resource, never the parameters. */
function answerFailures(logger: Logger, onAnswered: RapiServing['onAnswered']) {
  return async (context: ParameterizedContext<RapiState>, next: Next): Promise<void> => {
    context.set('Cache-Control', 'no-store');
    try {
      await next();
    } catch (error) {
      const failure = toRapiFailure(error, logger);
      context.status = failure.status;
      context.set({ ...failure.headers });
      // The rest of a stranger's request is not read. A user's client gets its answer after it has
      // sent everything.
      if (context.state.user === undefined) context.set('Connection', 'close');
      context.body = describeFailure(failure);
    }
    const { method, path, status } = context;
    const user = context.state.user?.name;
    onAnswered(method, status);
    const fields = { user, address: context.ip, method, path, status };
    // Strangers must not fill the log.
    if (user === undefined || method === 'GET') logger.debug('rapi.request', fields);
    else logger.info('rapi.request', fields);
  };
}

function authenticate(users: UsersFile, limit: LoginLimit, logger: Logger) {
  return async (context: ParameterizedContext<RapiState>, next: Next): Promise<void> => {
    if (!PUBLIC_PATHS.has(context.path)) {
      context.state.user = await findUser(context, users, limit, logger);
    }
    await next();
  };
}

async function findUser(
  context: ParameterizedContext<RapiState>,
  users: UsersFile,
  limit: LoginLimit,
  logger: Logger,
): Promise<RapiUser> {
  requireAttempt(context.ip, limit);
  const given = /^basic ([A-Za-z0-9+/]+=*)$/i.exec(context.get('authorization'))?.[1];
  const unauthorized = new RapiFailure(401, 'user name and password are required', {
    'WWW-Authenticate': `Basic realm="${REALM}"`,
  });
  if (given === undefined) throw unauthorized;
  const [name = '', ...rest] = Buffer.from(given, 'base64').toString('utf8').split(':');
  const user = await users.authenticate(name, rest.join(':'));
  // Many attempts may have waited for the users file since the first check.
  requireAttempt(context.ip, limit);
  if (user !== undefined) return user;
  limit.failed(context.ip);
  // Logged without the name, which may be a password in the wrong place.
  logger.warn('rapi.login-failed', { address: context.ip });
  throw unauthorized;
}

/** @throws RapiFailure 429, also for the right password */
function requireAttempt(address: string, limit: LoginLimit): void {
  const waitS = limit.waitS(address);
  if (waitS === 0) return;
  throw new RapiFailure(429, `too many wrong passwords: wait ${waitS} s`, {
    'Retry-After': String(waitS),
  });
}
