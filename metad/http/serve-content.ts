import type { Address } from '../dialects/address.ts';
import type { ContentResource, Resource } from '../dialects/tree.ts';
import { DEFAULT_CHANGE_WAIT_S, MAX_CHANGE_WAIT_S } from '../config/limits.ts';
import { queryInteger, waitingSignal } from './exchange.ts';
import type { Exchange } from './exchange.ts';
import { matchesEtag } from './request-guard.ts';
import { refuseAddress, sendText } from './reply.ts';

/** Returns the resource that `partial`, `recursive` or `alt` selects, if there is one. */
export function wholeOrPartial(
  found: ContentResource,
  query: URLSearchParams | null,
): ContentResource {
  if (found.whenRecursive && query?.get('recursive')?.toLowerCase() === 'true')
    return found.whenRecursive(query.get('alt') === 'text' ? 'text' : 'json');
  if (found.whenJson && query?.get('alt') === 'json') return found.whenJson;
  return query?.get('partial') === 'true' ? (found.whenPartial ?? found) : found;
}

export function serveContent(exchange: Exchange, found: ContentResource): void {
  const { request, response, headers, query } = exchange;
  const resource = wholeOrPartial(found, query);
  if (
    headers.ifNoneMatch !== undefined &&
    resource.status === 200 &&
    matchesEtag(headers.ifNoneMatch, resource.etag)
  ) {
    response.writeHead(304, ['ETag', resource.etag]);
    response.end();
    return;
  }
  // All requests share the list, and Node does not change it.
  response.writeHead(resource.status, resource.headers as string[]);
  if (request.method === 'HEAD') response.end();
  else if (resource.text !== null) response.end(resource.text, 'latin1');
  else response.end(resource.body);
}

export function isWaitForChange(query: URLSearchParams | null): query is URLSearchParams {
  return query?.get('wait_for_change')?.toLowerCase() === 'true';
}

/**
 * Waits until a path's content differs from `last_etag` (default: the present ETag), or
 * `timeout_sec` has passed, then answers.
 */
export async function serveAfterChange(
  exchange: Exchange,
  address: Address,
  first: ContentResource,
): Promise<void> {
  const { instance, response, query } = exchange;
  const waitMs = waitMsOf(query);
  if (waitMs === null) return sendText(response, 400, 'timeout_sec: not a whole number');
  if (exchange.hasWaited) return serveContent(exchange, first);
  const etagNow = (resource: ContentResource): string => wholeOrPartial(resource, query).etag;
  const lastEtag = lastEtagOf(query) ?? etagNow(first);
  const waiting = waitingSignal(response, waitMs);
  try {
    let resource: Resource | undefined = first;
    while (
      !waiting.signal.aborted &&
      resource?.kind === 'content' &&
      etagNow(resource) === lastEtag
    ) {
      await instance.waitForChange(waiting.signal);
      resource = instance.find(address);
    }
    if (waiting.isGone()) return;
    if (resource?.kind === 'content') serveContent(exchange, resource);
    else refuseAddress(response, address, 404, 'not found');
  } finally {
    waiting.dispose();
  }
}

/** @returns null when `timeout_sec` is not a number */
export function waitMsOf(query: URLSearchParams | null): number | null {
  const timeoutS = queryInteger(query, 'timeout_sec', Number.MAX_SAFE_INTEGER);
  if (timeoutS === null) return null;
  return Math.min(timeoutS ?? DEFAULT_CHANGE_WAIT_S, MAX_CHANGE_WAIT_S) * 1000;
}

export function lastEtagOf(query: URLSearchParams | null): string | undefined {
  return normalizedEtag(query?.get('last_etag'));
}

/** Clients send the ETag unchanged, weak, or without its quotes. */
function normalizedEtag(text: string | null | undefined): string | undefined {
  if (text === null || text === undefined || text === '') return undefined;
  const bare = text.replace(/^W\//, '').replace(/^"(.*)"$/, '$1');
  return `"${bare}"`;
}
