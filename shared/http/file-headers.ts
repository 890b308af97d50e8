import type { IncomingHttpHeaders } from 'node:http';
import { ownValue, setOwn } from '../json/own-value.ts';

/** Request headers that ask for a part of a file, or for a changed file, through a daemon. */
export const FILE_REQUEST_HEADERS = [
  'range',
  'if-range',
  'if-none-match',
  'if-modified-since',
] as const;
/** Response headers about a file that a daemon passes on. */
export const FILE_ANSWER_HEADERS = [
  'content-length',
  'content-range',
  'content-type',
  'accept-ranges',
  'etag',
  'last-modified',
] as const;

export function pickHeaders(
  headers: IncomingHttpHeaders,
  names: readonly string[],
): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = ownValue(headers, name);
    if (typeof value === 'string') setOwn(picked, name, value);
  }
  return picked;
}
