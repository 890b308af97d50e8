import type { z } from 'zod';
import { AppError } from '../errors/app-error.ts';
import { ownValue } from '../json/own-value.ts';
import type { AllEndpoints, EndpointKey, ParameterNames } from './endpoints.ts';

type Answers<Key extends EndpointKey> = AllEndpoints[Key]['answers'];
export type StreamKey = {
  [Key in EndpointKey]: Answers<Key> extends { 101: null } ? Key : never;
}[EndpointKey];
export type MediaKey = {
  [Key in EndpointKey]: Answers<Key> extends { 200: infer Body }
    ? Body extends z.ZodType
      ? never
      : Key
    : never;
}[EndpointKey];
/** Endpoints that answer with JSON or nothing. */
export type JsonKey = Exclude<EndpointKey, StreamKey | MediaKey>;
/** Endpoints that answer other nodes with JSON or nothing. */
export type PeerKey = {
  [Key in JsonKey]: AllEndpoints[Key] extends { forPeers: true } ? Key : never;
}[JsonKey];

type Json<Answer> = Answer extends z.ZodType ? z.output<Answer> : undefined;
export type JsonOf<Key extends JsonKey> = Json<Answers<Key>[keyof Answers<Key>]>;

/** Parts of the path, query and body of a request. */
export type Input<Key extends EndpointKey> = Readonly<
  Record<ParameterNames<Key>, string | number>
> &
  (AllEndpoints[Key] extends { query: infer Query extends z.ZodType }
    ? { readonly query?: z.input<Query> }
    : unknown) &
  (AllEndpoints[Key] extends { request: infer Body }
    ? { readonly body: Body extends z.ZodType ? z.input<Body> : Buffer }
    : unknown) & { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number };
/** The input is optional if none of its parts is required. */
export type Given<Key extends EndpointKey> =
  Partial<Input<Key>> extends Input<Key> ? [input?: Input<Key>] : [input: Input<Key>];

export interface LocatedRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: { readonly type: string; readonly bytes: Buffer };
  readonly signal: AbortSignal | undefined;
}

/** Input of any endpoint. */
interface AnyInput {
  readonly [parameter: string]: unknown;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Returns the request of an endpoint. Needs the types of the table only, since loading its schemas
 * would delay the start of each command.
 * @throws AppError USAGE for an empty name in the path
 */
export function locateEndpoint<Key extends EndpointKey>(
  key: Key,
  ...[input]: Given<Key>
): LocatedRequest {
  const { query = {}, body, signal, ...parameters }: AnyInput = input ?? {};
  // The form of every key.
  const [method, template] = key.split(' ') as [LocatedRequest['method'], string];
  const path = template.replace(/\{(\*?)(\w+)\}/g, (_, rest: string, name: string) => {
    const value = String(ownValue(parameters, name));
    return rest === '' ? encodeName(value) : value.split('/').map(encodeURIComponent).join('/');
  });
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return {
    method,
    path: pairs.length === 0 ? path : `${path}?${pairs.join('&').replaceAll('%2C', ',')}`,
    signal,
    ...(body !== undefined && { body: encodeBody(body) }),
  };
}

function encodeBody(body: unknown): NonNullable<LocatedRequest['body']> {
  return Buffer.isBuffer(body)
    ? { type: 'application/octet-stream', bytes: body }
    : { type: 'application/json', bytes: Buffer.from(JSON.stringify(body)) };
}

function encodeName(name: string): string {
  if (name !== '') return encodeURIComponent(name);
  throw new AppError('USAGE', 'a name is empty', { hint: 'Give the name of one, or leave it out' });
}
