import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '#shared/clock/clock.ts';
import { AGENT_PROOF_HEADER } from '#shared/contract/install-event.ts';
import { assertNever, messageOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { EventLog } from '../channel/event-log.ts';
import { resolveAddress } from '../dialects/address.ts';
import type { Address } from '../dialects/address.ts';
import { RenderFailure } from '../dialects/site.ts';
import type { Resource } from '../dialects/tree.ts';
import { HEADERS_PER_REQUEST_TOKEN } from '../config/limits.ts';
import { BOOT_TREE_DEPTH } from '../dialects/boot-paths.ts';
import { findActions, isTokenPath } from './actions.ts';
import type { Actions } from './actions.ts';
import type { Audit } from './audit.ts';
import { boundStreams } from './content-proxy.ts';
import type { ServeStream } from './content-proxy.ts';
import type { Exchange } from './exchange.ts';
import type { GuestMetrics } from './guest-metrics.ts';
import type { Wait } from './parked-requests.ts';
import type { ServeCredentials } from './serve-credentials.ts';
import type { ServeIdentity } from './serve-identity.ts';
import type { ServeRelay } from './serve-relay.ts';
import { isFlavorMissing, NEEDS_FLAVOR } from '../dialects/metadata-flavor.ts';
import type { Peer } from './peer.ts';
import { HeldRefusals, refuseForRate } from './held-refusals.ts';
import { hasUnreadBody, refuseAddress, sendText } from './reply.ts';
import { limitBodyTime } from './request-body.ts';
import { guardRequest } from './request-guard.ts';
import { parseRequestTarget } from './request-target.ts';
import {
  isWaitForChange,
  lastEtagOf,
  serveAfterChange,
  serveContent,
  waitMsOf,
  wholeOrPartial,
} from './serve-content.ts';
import { serveQueueRead } from './serve-queue.ts';

export interface GuestHandlerOptions {
  readonly events: EventLog;
  readonly serveStream: ServeStream;
  readonly serveIdentity: ServeIdentity;
  readonly serveCredentials: ServeCredentials;
  readonly serveRelay: ServeRelay;
  readonly metrics: GuestMetrics;
  readonly audit: Audit;
  readonly clock: Clock;
}

/** Most requests do not match, and skip the rest of the check. */
const MAY_WAIT = /[?&]wait_for_change=/;
const AGENT_ONLY =
  "only the agent of this installation can read this (header x-gnt-agent-proof); rebuild the appliance if its version differs from the node's";
const TOKEN_IS_REQUIRED =
  'a session token is required: the header X-aws-ec2-metadata-token is missing, wrong or expired; ' +
  'get a token with PUT /latest/api/token and the header X-aws-ec2-metadata-token-ttl-seconds: 1 to 21600';

/** Answers the requests of guests. All input is hostile until the guards have accepted it. */
export class GuestHandler {
  readonly #options: GuestHandlerOptions;
  readonly #serveStream: ServeStream;
  readonly #refusals: HeldRefusals;

  constructor(options: GuestHandlerOptions) {
    this.#options = options;
    this.#serveStream = boundStreams(options.serveStream);
    this.#refusals = new HeldRefusals(options.clock);
  }

  /** Never throws and never rejects: a failure ends this request only. */
  handle(peer: Peer, request: IncomingMessage, response: ServerResponse): void {
    const startedAtMs = this.#options.clock.monotonicMs();
    peer.asked();
    response.on('finish', peer.answered);
    try {
      const outcome = this.#answer(peer, request, response, startedAtMs);
      if (outcome) outcome.catch((error: unknown) => this.#fail(peer, response, error));
    } catch (error) {
      this.#fail(peer, response, error);
    }
    // Most answers are complete here, and need no listeners.
    if (response.writableEnded) {
      this.#finished(peer, request, response.statusCode, startedAtMs);
      return;
    }
    response.on('finish', () => {
      this.#finished(peer, request, response.statusCode, startedAtMs);
    });
    response.on('error', () => undefined);
  }

  noteRefusal({ instance }: Peer, status: number | null, reason: string): void {
    this.#options.audit.refused(instance, status, reason);
  }

  #finished(peer: Peer, request: IncomingMessage, status: number, startedAtMs: number): void {
    const url = request.url ?? '/';
    const question = url.indexOf('?');
    const path = question === -1 ? url : url.slice(0, question);
    const nowMs = this.#options.clock.monotonicMs();
    this.#options.metrics.finished(path, status, nowMs - startedAtMs);
    this.#options.audit.request(peer.instance, request.method ?? '', path, status, nowMs);
  }

  /**
   * Returns the wait of a request that can only wait for a change of content that its guest has,
   * and charges for the request. All other requests go to `handle`.
   */
  findWait(peer: Peer, request: IncomingMessage): Wait | undefined {
    if (!mayOnlyWait(peer, request)) return undefined;
    const { instance } = peer;
    const target = parseRequestTarget(request.url ?? '/');
    const guard = guardRequest(request.rawHeaders, target?.authority ?? null, true);
    const address = target?.relay === null ? resolveAddress(target.path) : undefined;
    if (!target || !guard.ok || guard.headers.ifNoneMatch !== undefined || !address)
      return undefined;
    if (isTokenMissing({ instance, request, headers: guard.headers }, address)) return undefined;
    const resource = instance.find(address);
    const waitMs = resource && waitOf(resource, target.query);
    if (resource?.kind !== 'content' || waitMs === undefined) return undefined;
    if (isFlavorMissing(request, address)) return undefined;
    const nowMs = this.#options.clock.monotonicMs();
    if (instance.takeRequest(nowMs, costOf(request)) > 0) return undefined;
    const { etag } = wholeOrPartial(resource, target.query);
    return { address, query: target.query, etag, waitMs };
  }

  #answer(
    peer: Peer,
    request: IncomingMessage,
    response: ServerResponse,
    nowMs: number,
  ): Promise<void> | void {
    const { metrics } = this.#options;
    const { instance, isGenuine, revival } = peer;
    peer.revival = undefined;
    // Must come first: a refusal below costs as much as an answer.
    const cost = costOf(request);
    // A revived request was charged before it was parked.
    const delayMs = revival === undefined ? instance.takeRequest(nowMs, cost) : 0;
    if (delayMs > 0) return this.#refuse(peer, response, delayMs, cost);
    if (!isGenuine) {
      metrics.refused('source');
      return sendText(response, 403, 'the source address does not belong to this instance');
    }
    // The parser takes a line without a version for HTTP/0.9, which has no headers to check.
    if (request.httpVersionMajor < 1)
      return sendText(response, 400, 'HTTP/1.0 or 1.1 is required', ['Connection', 'close']);
    const target = parseRequestTarget(request.url ?? '/');
    const guard = guardRequest(
      request.rawHeaders,
      target?.authority ?? null,
      request.httpVersionMinor > 0,
    );
    if (!guard.ok) {
      metrics.refused('guard');
      // The end of such a request may not be where the parser sees it.
      return sendText(response, guard.status, guard.reason, ['Connection', 'close']);
    }
    if (!target) return sendText(response, 400, 'malformed request target');
    const exchange = {
      instance,
      request,
      response,
      headers: guard.headers,
      query: target.query,
      hasWaited: revival === 'answer',
    };
    const address = target.relay === null ? resolveAddress(target.path) : undefined;
    if (isTokenMissing(exchange, address)) {
      metrics.refused('token');
      return refuseAddress(response, address, 401, TOKEN_IS_REQUIRED);
    }
    if (target.relay !== null) return this.#options.serveRelay(exchange, target.relay);
    if (hasUnreadBody(request)) limitBodyTime(request, response);
    if (!address) return refuseAddress(response, address, 404, 'not found');
    return this.#dispatch(exchange, address);
  }

  #refuse(peer: Peer, response: ServerResponse, delayMs: number, cost: number): void {
    const { metrics } = this.#options;
    metrics.refused('rate');
    if (cost > 1) {
      // Holding it would keep all its header lines in memory, and invite the next such request at
      // once.
      peer.instance.keepOut();
      refuseForRate(response, delayMs, ['Connection', 'close']);
    } else if (!this.#refusals.hold(peer.instance, response, delayMs)) {
      metrics.refused('unanswered');
      peer.cutOff();
    }
  }

  #dispatch(exchange: Exchange, address: Address): Promise<void> | void {
    const { instance, request, response } = exchange;
    const resource = instance.find(address);
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    if (resource && isReading) return this.#read(exchange, address, resource);
    const actions = findActions(instance.view, address);
    const perform = ownValue<Actions[keyof Actions]>(actions ?? {}, request.method ?? '');
    if (perform) {
      if (isFlavorMissing(request, address)) return sendText(response, 403, NEEDS_FLAVOR);
      const path = address.kind === 'entry' ? address.path : '';
      return perform(exchange, this.#options.events, path);
    }
    if (!resource && !actions) return refuseAddress(response, address, 404, 'not found');
    return refuseMethod(response, resource, actions);
  }

  #read(exchange: Exchange, address: Address, resource: Resource): Promise<void> | void {
    if (hasUnreadBody(exchange.request)) {
      return sendText(exchange.response, 400, 'GET and HEAD must not have a body');
    }
    if (isFlavorMissing(exchange.request, address))
      return sendText(exchange.response, 403, NEEDS_FLAVOR);
    if (resource.kind === 'content' && resource.isForAgent === true && !isAgents(exchange, address))
      return sendText(exchange.response, 403, AGENT_ONLY);
    return this.#serve(exchange, address, resource);
  }

  #serve(exchange: Exchange, address: Address, resource: Resource): Promise<void> | void {
    if (resource.kind === 'content') {
      if (isWaitForChange(exchange.query)) return serveAfterChange(exchange, address, resource);
      return serveContent(exchange, resource);
    }
    switch (resource.source) {
      case 'read':
        return serveQueueRead(exchange.instance.toGuest, exchange.response, exchange.query);
      case 'identity':
        return this.#options.serveIdentity(exchange, address);
      case 'aws':
      case 'google':
        return this.#options.serveCredentials(exchange, resource.source);
      case 'image':
      case 'package':
      case 'install-package':
        return this.#serveStream(exchange, resource.source);
      case 'mirror':
        return this.#serveStream(exchange, 'mirror', encodedPath(address));
      case 'boot':
        return this.#serveStream(exchange, 'boot', `boot/${encodedPath(address, BOOT_TREE_DEPTH)}`);
      default:
        return assertNever(resource.source);
    }
  }

  #fail({ instance }: Peer, response: ServerResponse, error: unknown): void {
    const fields = {
      error: messageOf(error),
      cause: error instanceof Error ? messageOf(error.cause) : undefined,
      ...(error instanceof RenderFailure && { dialect: error.dialect }),
    };
    this.#options.audit.failed(instance, 'error', 'http.failed', fields);
    if (response.headersSent) response.destroy();
    else sendText(response, 500, 'the metadata service could not answer this request');
  }
}

/** Judges by the request line and the parsed headers alone. */
function mayOnlyWait({ isGenuine, revival }: Peer, request: IncomingMessage): boolean {
  if (!isGenuine || revival !== undefined || request.method !== 'GET') return false;
  if (request.httpVersion !== '1.1' || hasBody(request)) return false;
  return MAY_WAIT.test(request.url ?? '');
}

/** @returns undefined for a request that is answered at once */
function waitOf(resource: Resource, query: URLSearchParams | null): number | undefined {
  if (resource.kind !== 'content' || resource.isForAgent === true) return undefined;
  if (!isWaitForChange(query) || lastEtagOf(query) !== wholeOrPartial(resource, query).etag)
    return undefined;
  return waitMsOf(query) || undefined;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined;
}

/**
 * Returns whether a request comes from the agent of the installation, not from a script in the same
 * appliance.
 */
function isAgents({ instance, request }: Exchange, address: Address): boolean {
  const proof = request.headers[AGENT_PROOF_HEADER];
  return address.kind === 'entry' && instance.isOfAgent(address.path, proof);
}

/** Each header line costs time to split and to check. */
function costOf({ rawHeaders }: IncomingMessage): number {
  return 1 + Math.floor(rawHeaders.length / 2 / HEADERS_PER_REQUEST_TOKEN);
}

/** Returns the path for a request to the node daemon. @param depth leading folders to omit */
function encodedPath(address: Address, depth = 0): string {
  const path = address.kind === 'entry' ? address.path : '';
  return path.split('/').slice(depth).map(encodeURIComponent).join('/');
}

/**
 * Returns whether the request lacks a required token. Where tokens are required, every path except
 * the token request needs one, since the other dialects serve the same secrets. An appliance needs
 * none: only our agent and our scripts run there, they may read everything, and no other host can
 * reach it.
 */
function isTokenMissing(
  exchange: Pick<Exchange, 'instance' | 'request' | 'headers'>,
  address: Address | undefined,
): boolean {
  const { instance, request, headers } = exchange;
  if (instance.view.metadataToken !== 'required' || instance.view.mode === 'install') return false;
  if (address && request.method === 'PUT' && isTokenPath(address)) return false;
  return headers.token === undefined || !instance.tokens.isValid(headers.token);
}

function refuseMethod(
  response: ServerResponse,
  resource: Resource | undefined,
  actions: Actions = {},
): void {
  const allowed = [...(resource ? ['GET', 'HEAD'] : []), ...Object.keys(actions)];
  sendText(response, 405, 'method not allowed', ['Allow', allowed.join(', ')]);
}
