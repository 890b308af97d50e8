import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { EndpointKey } from '#shared/contract/endpoints.ts';
import type {
  InstanceInfo,
  InstanceSummary,
  InstanceSummaryField,
} from '#shared/contract/instance.ts';
import {
  type Given,
  type Input,
  type JsonKey,
  type JsonOf,
  locateEndpoint,
  type MediaKey,
  type StreamKey,
} from '#shared/contract/locate-endpoint.ts';
import { AppError } from '#shared/errors/app-error.ts';
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
import { call, type Endpoint } from './connection.ts';

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
    const { path } = locateEndpoint('GET /v1/instances', { query: { lines: '1' } });
    return askLines(endpoint, path, (of) => of.instanceInfo);
  };
  return {
    async ask<Key extends JsonKey>(key: Key, ...given: Given<Key>): Promise<JsonOf<Key>> {
      const options = locateEndpoint(key, ...given);
      const idleTimeoutMs = given[0]?.timeoutMs ?? TIMEOUTS_MS[key] ?? ANSWER_TIMEOUT_MS;
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
    open: (key, ...given) => succeed(endpoint, locateEndpoint(key, ...given)),
    connect: (key, input) => raw(endpoint, locateEndpoint(key, input).path),
    instances: async () => (await Array.fromAsync(instanceSlices())).flat(),
    instanceSlices,
    instanceSummaries(fields) {
      const { path } = locateEndpoint('GET /v1/instance-summaries', {
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
        ...locateEndpoint('GET /v1/instances/{name}/metadata/{*path}', {
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
      const response = await succeed(
        endpoint,
        locateEndpoint('GET /v1/instances/{name}/queue', input),
      );
      const bytes = await readAll(response);
      return response.statusCode === 204 || bytes.length === 0 ? null : bytes;
    },
    async send(name, bytes) {
      const response = await withAnswers(
        call(endpoint, {
          ...locateEndpoint('POST /v1/instances/{name}/queue', { name, body: bytes }),
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

async function refusedToGuest(response: IncomingMessage, path: string): Promise<AppError> {
  const text = (await readAll(response)).toString('utf8').trim();
  const status = response.statusCode ?? 500;
  return new AppError(
    status === 404 ? 'NOT_FOUND' : status === 410 ? 'SECRET_LOST' : 'METAD_REFUSED',
    `the guest gets ${status} for /${path}${text === '' ? '' : `: ${text.slice(0, 300)}`}`,
    { hint: 'gnt-instance metadata NAME without a path lists the entries' },
  );
}
