import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { z } from 'zod';
import type { AllEndpoints, EndpointKey, ParameterNames } from '#shared/contract/endpoints.ts';
import type {
  InstanceInfo,
  InstanceSummary,
  InstanceSummaryField,
} from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import {
  ANSWER_TIMEOUT_MS,
  askLines,
  discard,
  loadAnswers,
  orFailure,
  raw,
  readAll,
  readerOf,
  succeed,
  withAnswers,
} from './ask-node.ts';
import { call, type CallOptions, type Endpoint } from './connection.ts';

/** Remote catalogues may be slow, and a large image may have to be copied. */
const CATALOGUE_TIMEOUT_MS = 1_800_000;
/** Milliseconds without a byte of an answer, if not ANSWER_TIMEOUT_MS. */
const TIMEOUTS_MS: { readonly [Key in EndpointKey]?: number } = {
  'DELETE /v1/jobs/{id}': Infinity,
  'DELETE /v1/nodes/{name}': Infinity,
  // The daemon seals all records again before it answers.
  'POST /v1/cluster/renew-crypto': 3_600_000,
  'POST /v1/images/resolve': CATALOGUE_TIMEOUT_MS,
  'POST /v1/images/import': CATALOGUE_TIMEOUT_MS,
  'POST /v1/images/remove': CATALOGUE_TIMEOUT_MS,
  'POST /v1/catalogues': CATALOGUE_TIMEOUT_MS,
  'POST /v1/catalogues/update': CATALOGUE_TIMEOUT_MS,
};

type Answers<Key extends EndpointKey> = AllEndpoints[Key]['answers'];
type StreamKey = {
  [Key in EndpointKey]: Answers<Key> extends { 101: null } ? Key : never;
}[EndpointKey];
type MediaKey = {
  [Key in EndpointKey]: Answers<Key> extends { 200: infer Body }
    ? Body extends z.ZodType
      ? never
      : Key
    : never;
}[EndpointKey];
type JsonKey = Exclude<EndpointKey, StreamKey | MediaKey>;

type Json<Answer> = Answer extends z.ZodType ? z.output<Answer> : undefined;
type JsonOf<Key extends JsonKey> = Json<Answers<Key>[keyof Answers<Key>]>;

/** Parts of the path, query and body of a request. */
type Input<Key extends EndpointKey> = Readonly<Record<ParameterNames<Key>, string | number>> &
  (AllEndpoints[Key] extends { query: infer Query extends z.ZodType }
    ? { readonly query?: z.input<Query> }
    : unknown) &
  (AllEndpoints[Key] extends { request: infer Body extends z.ZodType }
    ? { readonly body: z.input<Body> }
    : unknown) & { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number };
/** The input is optional if none of its parts is required. */
type Given<Key extends EndpointKey> =
  Partial<Input<Key>> extends Input<Key> ? [input?: Input<Key>] : [input: Input<Key>];

export interface MetadataAnswer {
  readonly contentType: string;
  readonly bytes: Buffer;
}

/**
 * The API of the node, by the keys of `shared/contract/endpoints.ts`. All methods throw
 * NODED_UNREACHABLE, and CommandFailure with the code of the API.
 */
export interface NodeClient {
  /** Returns the validated JSON of an answer, undefined for status 204. */
  ask<Key extends JsonKey>(key: Key, ...given: Given<Key>): Promise<JsonOf<Key>>;
  /** Returns an answer of lines or bytes at its first byte. It has no timeout. */
  open<Key extends MediaKey>(key: Key, ...given: Given<Key>): Promise<IncomingMessage>;
  /** Turns a connection into a raw stream. */
  connect<Key extends StreamKey>(key: Key, input: Input<Key>): Promise<Socket>;
  instances(): Promise<InstanceInfo[]>;
  /** Returns all instances in slices, as they arrive. */
  instanceSlices(): AsyncIterable<readonly InstanceInfo[]>;
  /** Returns these fields of all instances in slices, as they arrive. */
  instanceSummaries<Field extends InstanceSummaryField>(
    fields: readonly Field[],
  ): AsyncIterable<readonly Pick<InstanceSummary, Field>[]>;
  metadata(name: string, path: string): Promise<MetadataAnswer>;
  /**
   * Takes the bytes from the guest, waiting up to `waitS` seconds. Returns null when there are
   * none.
   */
  receive(name: string, waitS: number, signal?: AbortSignal): Promise<Buffer | null>;
  /**
   * Queues bytes for the guest. Returns true, or the seconds before a new attempt if its queue is
   * full.
   */
  send(name: string, bytes: Buffer): Promise<true | number>;
}

export function createNodeClient(endpoint: Endpoint): NodeClient {
  const instanceSlices = (): AsyncIterable<readonly InstanceInfo[]> => {
    const { path } = locate('GET /v1/instances', { query: { lines: '1' } });
    return askLines(endpoint, path, (of) => of.instanceInfo);
  };
  return {
    async ask<Key extends JsonKey>(key: Key, ...[input]: Given<Key>): Promise<JsonOf<Key>> {
      const options = locate(key, input);
      const idleTimeoutMs = input?.timeoutMs ?? TIMEOUTS_MS[key] ?? ANSWER_TIMEOUT_MS;
      const response = await succeed(endpoint, {
        ...options,
        ...(idleTimeoutMs !== Infinity && { idleTimeoutMs }),
      });
      const { statusCode: status = 500 } = response;
      if (status === 204) {
        await discard(response);
        return undefined as JsonOf<Key>; // The table has no body for this status.
      }
      const read = await readerOf(response, options.path, (of) => of.schemaOf(key, status));
      // The schema is that of the endpoint.
      return read(await readAll(response)) as JsonOf<Key>;
    },
    open: (key, ...[input]) => succeed(endpoint, locate(key, input)),
    connect: (key, input) => raw(endpoint, locate(key, input).path),
    instances: async () => (await Array.fromAsync(instanceSlices())).flat(),
    instanceSlices,
    instanceSummaries(fields) {
      const { path } = locate('GET /v1/instance-summaries', {
        query: { fields: fields.join(',') },
      });
      const mask: { [Field in InstanceSummaryField]?: true } = {};
      for (const field of fields) mask[field] = true;
      type Asked = Pick<InstanceSummary, (typeof fields)[number]>;
      return askLines<Asked>(endpoint, path, (of) => of.instanceSummary.pick(mask));
    },
    async metadata(name, path) {
      const leaf = path.replace(/\?partial=true$/, '');
      const response = await call(endpoint, {
        ...locate('GET /v1/instances/{name}/metadata/{*path}', {
          name,
          path: leaf,
          query: { partial: leaf === path ? undefined : '1' },
        }),
        idleTimeoutMs: ANSWER_TIMEOUT_MS,
      });
      const isJson = response.headers['content-type']?.startsWith('application/json') ?? false;
      // Refusals of gnt-metad to the guest are not JSON; errors of gnt-noded are.
      if ((response.statusCode ?? 500) >= 400 && !isJson) {
        throw await refusedToGuest(response, path);
      }
      await orFailure(response);
      return {
        contentType: response.headers['content-type'] ?? 'application/octet-stream',
        bytes: await readAll(response),
      };
    },
    async receive(name, waitS, signal) {
      const input = { name, query: { wait: waitS }, signal };
      const response = await succeed(endpoint, locate('GET /v1/instances/{name}/queue', input));
      const bytes = await readAll(response);
      return response.statusCode === 204 || bytes.length === 0 ? null : bytes;
    },
    async send(name, bytes) {
      const response = await withAnswers(
        call(endpoint, {
          ...locate('POST /v1/instances/{name}/queue', { name }),
          body: { type: 'application/octet-stream', bytes },
          idleTimeoutMs: ANSWER_TIMEOUT_MS,
        }),
      );
      if (response.statusCode === 429) {
        const answers = await loadAnswers();
        const answer = answers.refusal.safeParse(parseJson(await readAll(response)));
        return Math.max(
          1,
          answers.fullChannel.safeParse(answer.data?.details).data?.retryAfter ?? 1,
        );
      }
      await discard(await orFailure(response));
      return true;
    },
  };
}

/** Input of any endpoint, as `locate` reads it. */
interface AnyInput {
  readonly [parameter: string]: unknown;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** @throws AppError USAGE for an empty name in the path */
function locate<Key extends EndpointKey>(key: Key, input: Input<Key> | undefined): CallOptions {
  const { query = {}, body, signal, ...parameters }: AnyInput = input ?? {};
  // The form of every key.
  const [method, template] = key.split(' ') as [NonNullable<CallOptions['method']>, string];
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
    ...(body !== undefined && {
      body: { type: 'application/json', bytes: Buffer.from(JSON.stringify(body)) },
    }),
  };
}

async function refusedToGuest(response: IncomingMessage, path: string): Promise<AppError> {
  const text = (await readAll(response)).toString('utf8').trim();
  const status = response.statusCode ?? 500;
  return new AppError(
    status === 404 ? 'NOT_FOUND' : status === 410 ? 'SECRET_LOST' : 'METAD_REFUSED',
    `the guest gets ${status} for /${path}${text === '' ? '' : `: ${text.slice(0, 300)}`}`,
    { hint: 'gnt-instance metadata NAME without a path lists the entries' },
  );
}

function encodeName(name: string): string {
  if (name !== '') return encodeURIComponent(name);
  throw new AppError('USAGE', 'a name is empty', { hint: 'Give the name of one, or leave it out' });
}
