import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { z } from 'zod';
import { abortReason } from '#shared/abort/abortable.ts';
import { startDeadline } from '#shared/abort/deadline.ts';
import { apiError } from '#shared/contract/api.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { isErrorCode } from '#shared/errors/codes.ts';
import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { requestOverSocket, upgradeOverSocket } from '#shared/socket/http-request.ts';
import { collect } from '#shared/stream/collect.ts';
import { MIB } from '#shared/units/bytes.ts';

/** How this node reaches the API of another one. */
export interface Peers {
  /**
   * @param options `evenOffline`: one that is marked offline is asked all the same
   * @throws AppError NODE_NOT_FOUND, NODE_OFFLINE, NODE_UNREACHABLE, STORE_UNAVAILABLE
   */
  open(node: string, options?: { readonly evenOffline?: boolean }): Promise<Duplex>;
}

export interface PeerRequest {
  readonly method: string;
  readonly path: string;
  readonly body?: { readonly type: string; readonly bytes: Buffer };
  readonly signal?: AbortSignal | undefined;
}

/** Answers that are no streams: the list of all instances is the longest. */
const MAX_ANSWER_BYTES = 64 * MIB;
/**
 * So many take a parser some tenths of a second. As many as the bytes would allow take it ten
 * seconds, in which nobody else is served, and 2 GiB.
 */
export const MAX_ANSWER_VALUES = 1_000_000;

export class UnreachableNode extends AppError {
  /** It took the question: it hangs, or does not know it, as another release does. */
  readonly isThere: boolean;

  constructor(node: string, { isThere }: { readonly isThere: boolean }) {
    super('NODE_UNREACHABLE', `node '${node}' does not answer`, {
      details: { node },
      hint: `Check that gnt-noded runs there, has the same release, and reaches the store.`,
    });
    this.isThere = isThere;
  }
}

/** A node that is mute takes questions: it hangs, or is of another release. */
export type Presence = 'answers' | 'mute' | 'gone';

/** Whether a node's daemon is there. @throws AppError STORE_UNAVAILABLE */
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
 * One request to another node's API, up to the head of its answer.
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
 * An answer of any length, which has to begin in time.
 * @throws as `requestPeer`, and what the other node refuses it with
 */
export async function openAnswer(
  peers: Peers,
  node: string,
  path: string,
  { withinMs, signal }: { readonly withinMs: number; readonly signal?: AbortSignal },
): Promise<IncomingMessage> {
  using late = startDeadline(signal, withinMs, () => new Error('no answer'));
  const answer = await requestPeer(peers, node, { method: 'GET', path, signal: late.signal });
  if (answer.statusCode !== 200) await throwRefusal(answer, node);
  return answer;
}

/**
 * A raw stream to what another node opens for it.
 * @throws as `requestPeer`, and what it refuses it with
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

/** One request whose answer is JSON. @throws as `requestPeer`, and what the other node says */
export async function askPeer<T extends z.ZodType>(
  peers: Peers,
  node: string,
  asking: PeerRequest,
  schema: T,
): Promise<z.output<T>> {
  const answer = await requestPeer(peers, node, asking);
  const parsed = parseJson(await readAll(answer, node, asking.method));
  if ((answer.statusCode ?? 500) >= 400) throw failureOf(parsed, node);
  return schema.parse(parsed);
}

/** @throws AppError with the code, message and hint that the other node gave */
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
  // JSON it was, so JSON it is.
  const details = parsed.data.details as AppError['details'];
  return new AppError(isErrorCode(code) ? code : 'INTERNAL', message, {
    details,
    ...(hint !== null && { hint }),
  });
}

/** What only asks can be asked again; what else it was asked for, it may be doing. */
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
