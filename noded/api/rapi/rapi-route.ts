import { Readable } from 'node:stream';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { opcode, type Opcode } from '#shared/contract/opcode.ts';
import { countJsonValues } from '#shared/json/count-values.ts';
import { parseInput, refuseUnusable } from '../http/http-errors.ts';
import { MAX_BODY_BYTES, MAX_BODY_VALUES, parseUtf8Json, readBody } from '../http/read-body.ts';
import { untilGone } from '../http/until-gone.ts';
import type { JobService } from '../../jobs/job-service.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import { confineNics } from './confine-nics.ts';
import { confineOpcode } from './confine-opcode.ts';
import { refuseLocal } from './refuse-local.ts';
import { RapiFailure } from './rapi-failure.ts';
import type { Role } from './user-options.ts';
import type { RapiUser } from './users-file.ts';

/** Readers send at most a query's filter; only writers may send documents. */
const MAX_READER_BODY_BYTES = 64 * 1024;

export interface RapiRequest {
  /** The user; on public paths a user who sees no instance. */
  readonly user: RapiUser;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Parsed JSON; undefined without a body. */
  readonly body: unknown;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface RapiRoute {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly role: Role;
  /** Reason why the resource is not served. */
  readonly refusal?: string;
  /** @returns a value to encode as JSON, or a stream of JSON */
  readonly handle: (request: RapiRequest) => unknown;
}

/** The user of requests without a login. */
const NOBODY: RapiUser = { name: '', role: 'read', scope: { tags: [], names: [] } };

export interface RapiState {
  /** Undefined for public resources. */
  user?: RapiUser;
}

export function addRapiRoutes(router: Router<RapiState>, routes: readonly RapiRoute[]): void {
  for (const route of routes) {
    router.register(route.path, [route.method], async (context) => {
      const { user } = context.state;
      if (route.role === 'write' && user?.role !== 'write') {
        throw new RapiFailure(403, 'this needs a user with the option write');
      }
      refuseUnusable([...context.URL.searchParams]);
      const answer = await route.handle({
        user: user ?? NOBODY,
        params: context.params,
        query: context.URL.searchParams,
        body: await readRequest(context, route.role),
        signal: untilGone(context.res),
      });
      context.type = 'application/json';
      // JSON also for null and bare strings, since clients parse every answer.
      context.body = answer instanceof Readable ? answer : JSON.stringify(answer ?? null);
    });
  }
}

async function readRequest(context: RouterContext<RapiState>, role: Role): Promise<unknown> {
  const limit = role === 'write' ? MAX_BODY_BYTES : MAX_READER_BODY_BYTES;
  const bytes = await readBody(context.req, limit);
  if (bytes.length === 0) return undefined;
  if (context.is('application/json') === false) {
    throw new RapiFailure(415, 'the body must be application/json');
  }
  if (countJsonValues(bytes, MAX_BODY_VALUES) > MAX_BODY_VALUES) {
    throw new RapiFailure(413, `the body has more than ${MAX_BODY_VALUES} values`);
  }
  const value = parseUtf8Json(bytes);
  if (value === undefined) throw new RapiFailure(400, 'Unable to parse JSON data');
  return value;
}

/**
 * Submits a user's operation.
 * @returns the job's id
 */
export type Submit = (
  opcode: Opcode,
  user: RapiUser,
  options?: { readonly isDryRun: boolean },
) => Promise<number>;

/**
 * Creates a function that submits jobs of remote users, with their rights. Files are confined to
 * the folders that the operator allows.
 */
export function createSubmit(
  jobs: Pick<JobService, 'submit'>,
  clusters: Pick<ClusterRepository, 'load'>,
): Submit {
  return async (asked, { name, scope }, options) => {
    const { remoteFolders = [], remoteHosts = [] } = await clusters.load();
    const confined = confineOpcode(asked, { folders: remoteFolders, hosts: remoteHosts });
    refuseLocal(confined, scope);
    const bounded = scope === null ? confined : confineNics(confined);
    return jobs.submit(bounded, { ...options, submitter: { user: name, scope } });
  };
}

/** Returns a route that reads. */
export function readRoute(path: string, handle: RapiRoute['handle']): RapiRoute {
  return { method: 'GET', path, role: 'read', handle };
}

/** Returns a route for a change: the request becomes an opcode, the answer is the job's id. */
export function submitRoute(
  submit: Submit,
  method: RapiRoute['method'],
  path: string,
  translate: (request: RapiRequest) => unknown,
): RapiRoute {
  return {
    method,
    path,
    role: 'write',
    handle: async (request) => {
      const requested = parseInput(opcode, await translate(request));
      return submit(requested, request.user, { isDryRun: isSet(request.query, 'dry-run') });
    },
  };
}

/** Returns a boolean of a query, which Ganeti writes as a number. @throws RapiFailure 400 */
export function isSet(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  if (value === null || value === '0') return false;
  if (/^\d{1,9}$/.test(value)) return true;
  throw new RapiFailure(400, `Invalid value for the '${name}' parameter`);
}
