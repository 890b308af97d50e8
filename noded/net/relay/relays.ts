import type { Readable } from 'node:stream';
import { TokenBucket } from '#shared/bounds/token-bucket.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { ClusterRecord } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import {
  DEFAULT_RELAY_BYTES,
  DEFAULT_RELAY_METHODS,
  DEFAULT_RELAY_RATE,
  DEFAULT_RELAY_TIMEOUT_S,
  type RelaySettings,
} from '#shared/contract/relay.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import type { Logger } from '#shared/log/log.ts';
import type { ClusterRepository } from '../../records/cluster-repository.ts';
import {
  askUpstream,
  BodyTooLarge,
  createUpstream,
  type RequestBody,
  type Upstream,
} from './ask-upstream.ts';
import { createCredential, type Credential } from './credential.ts';
import { Refusal, type RelayRefusal } from './refusal.ts';
import { answerBody, guestHeaders } from './relay-answer.ts';
import { type HeaderList, requestHeaders } from './relay-headers.ts';
import type { RelaySecrets } from './relay-secrets.ts';
import { relayTarget } from './relay-target.ts';

/** The reserved tag that lets an instance use a relay. */
const RELAY_TAG = 'gnt:relay=';
/** Rates that are kept; the oldest is forgotten first. More than a node has instances. */
const MAX_BUCKETS = 4096;

export interface RelayRequest {
  readonly method: string;
  /** Below the relay, percent-encoded, with the query. */
  readonly target: string;
  readonly headers: HeaderList;
  readonly body: Pick<RequestBody, 'stream' | 'length'> | null;
  readonly signal: AbortSignal;
}

export type RelayAnswer =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: HeaderList;
      readonly body: Readable;
      /** Counts the request. To be called once, at its end. */
      readonly ended: () => RelayUsage;
    }
  | RelayRefusal;

/** Bytes of bodies. */
export interface RelayUsage {
  readonly sent: number;
  readonly received: number;
}

/** Relays a request of an instance to a server, with a credential that the guest cannot read. */
export type OpenRelay = (uuid: string, name: string, request: RelayRequest) => Promise<RelayAnswer>;

export interface RelayCount extends RelayUsage {
  readonly relay: string;
  readonly answers: number;
  readonly failures: number;
}

export interface RelaysDependencies {
  readonly clusters: Pick<ClusterRepository, 'load'>;
  readonly instances: { findByUuid(uuid: string): Promise<InstanceRecord | undefined> };
  /** Returns whether a guest runs on this node, with its channel and its record. */
  readonly hasChannel: (uuid: string) => boolean;
  readonly secrets: RelaySecrets;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The relays of this node. */
export interface Relays {
  readonly open: OpenRelay;
  /** Keeps a secret in memory. @throws AppError NOT_FOUND */
  give(name: string, secret: string): Promise<void>;
  /** Returns the relays whose secret this node lacks. */
  listMissing(cluster: Pick<ClusterRecord, 'relays'>): readonly string[];
  /** Forgets secrets of removed and changed relays, and counts of removed ones. */
  refresh(): Promise<void>;
  /** Returns the totals of each relay since the start. */
  counts(): readonly RelayCount[];
}

interface Total {
  answers: number;
  failures: number;
  sent: number;
  received: number;
}

interface Known {
  readonly relay: RelaySettings;
  readonly credential: Credential;
  readonly upstream: Upstream;
}

export function createRelays(dependencies: RelaysDependencies): Relays {
  const { clusters, instances, hasChannel, secrets, clock, logger } = dependencies;
  const upstreams = new Map<string, { readonly key: string; readonly upstream: Upstream }>();
  const buckets = new Map<string, TokenBucket>();
  const totals = new Map<string, Total>();

  const upstreamOf = (name: string, { url }: RelaySettings, ca: string | undefined): Upstream => {
    const key = JSON.stringify([url, ca]);
    const known = upstreams.get(name);
    if (known?.key === key) return known.upstream;
    const upstream = createUpstream(new URL(url), ca);
    upstreams.set(name, { key, upstream });
    return upstream;
  };

  const charge = (uuid: string, name: string, { rate = DEFAULT_RELAY_RATE }: RelaySettings) => {
    const key = `${uuid} ${name}`;
    const nowMs = clock.monotonicMs();
    const bucket = buckets.get(key) ?? new TokenBucket(rate, nowMs);
    buckets.delete(key);
    buckets.set(key, bucket);
    const [oldest] = buckets.keys();
    if (oldest !== undefined && buckets.size > MAX_BUCKETS) buckets.delete(oldest);
    const delayMs = bucket.take({ perSecond: rate / 60, burst: rate }, nowMs);
    if (delayMs > 0)
      throw new Refusal(429, `more than ${rate} requests per minute to relay ${name}`, [
        ...['retry-after', String(Math.ceil(delayMs / 1000))],
      ]);
  };

  /** @throws Refusal */
  const require = async (uuid: string, name: string): Promise<Known> => {
    const { relays = {}, imageCa } = await clusters.load();
    const relay = ownValue(relays, name);
    const instance = hasChannel(uuid) ? await instances.findByUuid(uuid) : undefined;
    const isAllowed = relay?.access === 'all' || instance?.tags.includes(`${RELAY_TAG}${name}`);
    if (relay === undefined || instance === undefined || isAllowed !== true)
      throw new Refusal(404, `this instance has no relay '${name}' (tag ${RELAY_TAG}${name})`);
    charge(uuid, name, relay);
    const secret = secrets.find(name, relay.url);
    if (secret === undefined)
      throw new Refusal(
        410,
        `the node has lost the secret of relay '${name}', which is kept in memory only; an administrator gives it again with gnt-cluster set-relay-secret ${name}`,
      );
    const credential = createCredential(relay.auth, secret);
    return { relay, credential, upstream: upstreamOf(name, relay, imageCa) };
  };

  const ask = async (name: string, known: Known, request: RelayRequest): Promise<RelayAnswer> => {
    const { relay, credential, upstream } = known;
    const target = judge(relay, request);
    const usage = { sent: 0, received: 0 };
    const { maxBytes = DEFAULT_RELAY_BYTES, timeoutS = DEFAULT_RELAY_TIMEOUT_S } = relay;
    if ((request.body?.length ?? 0) > maxBytes)
      throw new Refusal(413, `the relay takes at most ${maxBytes} bytes`);
    const given = requestHeaders(request.headers, relay.auth);
    const timeout = AbortSignal.timeout(timeoutS * 1000);
    const answer = await askUpstream(upstream, {
      method: request.method,
      url: target.url,
      query: [target.query, credential.query].filter((part) => part !== null).join('&') || null,
      headers: [...given, 'accept-encoding', 'identity', ...(credential.header ?? [])],
      body: request.body && {
        ...request.body,
        maxBytes,
        onBytes: (count) => {
          usage.sent += count;
        },
      },
      signal: AbortSignal.any([request.signal, timeout]),
    });
    try {
      const headers = guestHeaders(name, { relay, credential, maxBytes }, target.url, answer);
      const limits = { timeout, timeoutS, maxBytes, usage };
      const body = answerBody(answer, credential.forms, limits);
      const { statusCode: status = 502 } = answer;
      return { kind: 'answer', status, headers, body, ended: () => count(name, usage, true) };
    } catch (error) {
      answer.destroy();
      throw error;
    }
  };

  const count = (name: string, usage: RelayUsage, isAnswer: boolean): RelayUsage => {
    const total = totals.get(name) ?? { answers: 0, failures: 0, sent: 0, received: 0 };
    total[isAnswer ? 'answers' : 'failures'] += 1;
    total.sent += usage.sent;
    total.received += usage.received;
    totals.set(name, total);
    return usage;
  };

  return {
    open: async (uuid, name, request) => {
      let known: Known | undefined;
      try {
        known = await require(uuid, name);
        return await ask(name, known, request);
      } catch (error) {
        if (request.signal.aborted) throw error;
        if (known) count(name, { sent: 0, received: 0 }, false);
        return { cause: messageOf(error), ...refusalOf(name, error, known !== undefined) };
      }
    },
    give: async (name, secret) => {
      const { relays = {} } = await clusters.load();
      const relay = ownValue(relays, name);
      if (relay === undefined)
        throw new AppError('NOT_FOUND', `there is no relay '${name}'`, {
          hint: `Create it first: gnt-cluster modify --relay ${name}=URL,auth=bearer`,
          details: { name },
        });
      secrets.give(name, relay.url, secret);
      logger.info('relay.secret-given', { relay: name });
    },
    listMissing: ({ relays = {} }) =>
      Object.entries(relays).flatMap(([name, { url }]) =>
        secrets.find(name, url) === undefined ? [name] : [],
      ),
    refresh: async () => {
      const { relays = {} } = await clusters.load();
      secrets.keepOnly(relays);
      for (const name of [...upstreams.keys(), ...totals.keys()]) {
        if (Object.hasOwn(relays, name)) continue;
        upstreams.delete(name);
        totals.delete(name);
      }
    },
    counts: () => [...totals].map(([relay, total]) => ({ relay, ...total })),
  };
}

/** @throws Refusal */
function judge(relay: RelaySettings, { method, target }: RelayRequest) {
  const methods: readonly string[] = relay.methods ?? DEFAULT_RELAY_METHODS;
  if (!methods.includes(method))
    throw new Refusal(405, `the relay does not allow ${method}`, ['allow', methods.join(', ')]);
  const judged = relayTarget(relay, target);
  if ('refusal' in judged) throw new Refusal(403, judged.refusal);
  return judged;
}

/** Names no address: the reason is in the log. */
function refusalOf(name: string, error: unknown, isServer: boolean): RelayRefusal {
  if (error instanceof Refusal) return error.refusal;
  if (error instanceof BodyTooLarge) return new Refusal(413, error.message).refusal;
  if (!isServer) return new Refusal(503, `relay '${name}' is not available now`).refusal;
  if (error instanceof Error && error.name === 'TimeoutError')
    return new Refusal(504, `the server of relay '${name}' did not answer in time`).refusal;
  const code = systemCodeOf(error);
  return new Refusal(
    502,
    `the server of relay '${name}' cannot be reached${code === undefined ? '' : ` (${code})`}`,
  ).refusal;
}
