import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { abortReason } from '#shared/abort/abortable.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { apiError } from '#shared/contract/api.ts';
import type { Endpoint } from '#shared/contract/endpoint.ts';
import { endpoints } from '#shared/contract/endpoints.ts';
import {
  type Given,
  type JsonOf,
  type LocatedRequest,
  locateEndpoint,
  type PeerKey,
} from '#shared/contract/locate-endpoint.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { isErrorCode } from '#shared/errors/codes.ts';
import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { requestOverSocket, upgradeOverSocket } from '#shared/socket/http-request.ts';
import { collect } from '#shared/stream/collect.ts';
import { MIB } from '#shared/units/bytes.ts';

/** Connects to the API of other nodes. */
export interface Peers {
  /**
   * @param options `evenOffline`: also connect to a node that is marked offline
   * @throws AppError NODE_NOT_FOUND, NODE_OFFLINE, NODE_UNREACHABLE, STORE_UNAVAILABLE
   */
  open(node: string, options?: { readonly evenOffline?: boolean }): Promise<Duplex>;
}

/** Limit of answers that are no streams. The list of all instances is the longest. */
const MAX_ANSWER_BYTES = 64 * MIB;
/**
 * The parser needs some tenths of a second for this number. For as many values as the bytes allow
 * it would block the daemon for ten seconds and need 2 GiB.
 */
export const MAX_ANSWER_VALUES = 1_000_000;

export class UnreachableNode extends AppError {
  /** The node received the request: it hangs, or its release does not know the request. */
  readonly isThere: boolean;

  constructor(node: string, { isThere }: { readonly isThere: boolean }) {
    super('NODE_UNREACHABLE', `node '${node}' does not answer`, {
      details: { node },
      hint: `Check that gnt-noded runs there, has the same release, and reaches the store.`,
    });
    this.isThere = isThere;
  }
}

/** A request of the table, or a forwarded request of a client. */
type PeerRequest = Omit<LocatedRequest, 'method'> & { readonly method: string };

/** A mute node receives requests and does not answer: it hangs, or runs another release. */
export type Presence = 'answers' | 'mute' | 'gone';

/** Returns the state of a node's daemon. @throws AppError STORE_UNAVAILABLE */
export async function presenceOf(peers: Peers, node: string): Promise<Presence> {
  try {
    (await peers.open(node, { evenOffline: true })).destroy();
    return 'answers';
  } catch (error) {
    if (error instanceof UnreachableNode && error.isThere) return 'mute';
    if (isAppError(error, 'NODE_UNREACHABLE') || isAppError(error, 'NODE_NOT_FOUND')) return 'gone';
    throw error;
  }
}

/**
 * Sends a request to another node's API. Resolves with the head of the answer.
 * @throws as `open`, and the signal's reason
 */
export async function requestPeer(
  peers: Peers,
  node: string,
  { method, path, body, signal }: PeerRequest,
): Promise<IncomingMessage> {
  const stream = await openUntil(peers, node, signal);
  try {
    return await requestOverSocket({
      on: stream,
      method,
      path,
      headers: { host: node, ...(body && { 'content-type': body.type }) },
      body: body?.bytes,
      signal,
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw brokenOff(node, error, method);
  }
}

/**
 * Returns an answer of any length that begins in time.
 * @throws as `requestPeer`, and the other node's refusal
 */
export async function openAnswer(
  peers: Peers,
  node: string,
  { path }: Pick<PeerRequest, 'path'>,
  { withinMs, signal }: { readonly withinMs: number; readonly signal?: AbortSignal },
): Promise<IncomingMessage> {
  using late = startDeadline(signal, withinMs, () => new Error('no answer'));
  const answer = await requestPeer(peers, node, { method: 'GET', path, signal: late.signal });
  if (answer.statusCode !== 200) await throwRefusal(answer, node);
  return answer;
}

/**
 * Opens a raw stream through another node.
 * @throws as `requestPeer`, and the other node's refusal
 */
export async function upgradePeer(
  peers: Peers,
  node: string,
  { path, signal }: Pick<PeerRequest, 'path' | 'signal'>,
): Promise<Duplex> {
  const on = await openUntil(peers, node, signal);
  const headers = { host: node };
  const opened = await upgradeOverSocket({ on, path, headers, signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw brokenOff(node, error);
  });
  return opened.kind === 'raw' ? opened.socket : throwRefusal(opened.answer, node);
}

/**
 * Returns the JSON answer of another node, undefined for an answer without a body.
 * @throws as `requestPeer`, and the other node's error
 */
export async function askPeer<Key extends PeerKey>(
  peers: Peers,
  node: string,
  key: Key,
  ...given: Given<Key>
): Promise<JsonOf<Key>> {
  const request = locateEndpoint(key, ...given);
  const answer = await requestPeer(peers, node, request);
  const status = answer.statusCode ?? 500;
  const parsed = parseJson(await readAll(answer, node, request.method));
  if (status >= 400) throw failureOf(parsed, node);
  const { answers }: Endpoint = endpoints[key];
  const schema = answers[status];
  // The schema is that of the endpoint.
  return (schema instanceof z.ZodType ? schema.parse(parsed) : undefined) as JsonOf<Key>;
}

/** @throws AppError with the code, message and hint of the other node */
export async function throwRefusal(answer: IncomingMessage, node: string): Promise<never> {
  throw failureOf(parseJson(await readAll(answer, node)), node);
}

async function openUntil(peers: Peers, node: string, signal?: AbortSignal): Promise<Duplex> {
  const stream = await peers.open(node);
  if (signal?.aborted !== true) return stream;
  stream.destroy();
  throw abortReason(signal);
}

async function readAll(answer: IncomingMessage, node: string, method = 'GET'): Promise<Buffer> {
  try {
    const bytes = await collect(answer, MAX_ANSWER_BYTES);
    if (countJsonValues(bytes, MAX_ANSWER_VALUES) > MAX_ANSWER_VALUES)
      throw new Error(`its answer has more than ${MAX_ANSWER_VALUES} values`);
    return bytes;
  } catch (error) {
    throw brokenOff(node, error, method);
  }
}

function failureOf(body: unknown, node: string): AppError {
  const parsed = apiError.safeParse(body);
  if (!parsed.success) return new AppError('INTERNAL', `node '${node}' refuses without a reason`);
  const { code, message, hint } = parsed.data;
  // Parsed from JSON.
  const details = parsed.data.details as AppError['details'];
  return new AppError(isErrorCode(code) ? code : 'INTERNAL', message, {
    details,
    ...(hint !== null && { hint }),
  });
}

/** A GET can be repeated. Other operations may still be running on the other node. */
function brokenOff(node: string, cause: unknown, method = 'GET'): AppError {
  if (method === 'GET') {
    return new AppError('NODE_UNREACHABLE', `node '${node}' closed the connection`, {
      details: { node },
      hint: 'Check that gnt-noded runs there, and repeat the command.',
      cause,
    });
  }
  return new AppError(
    'NODE_UNREACHABLE',
    `node '${node}' closed the connection; the operation may still be running there`,
    {
      details: { node, mayBeDone: true },
      hint: 'Check that gnt-noded runs there. Look at gnt-job list before you repeat the command.',
      cause,
    },
  );
}
