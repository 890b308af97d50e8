import type { Duplex, Readable } from 'node:stream';
import type { z } from 'zod';
import type { Endpoint, MediaBody } from '#shared/contract/endpoint.ts';
import type { AllEndpoints, ParameterNames } from '#shared/contract/endpoints.ts';
import type { Scope } from '#shared/contract/submitter.ts';

/** A user of another interface than the node's own socket. */
export interface RemoteUser {
  readonly name: string;
  /** `write` includes reading. */
  readonly role: 'read' | 'write';
  /** Instances that the user is bound to; null: all, and the cluster. */
  readonly scope: Scope | null;
}

export interface Asked<Key extends string, E extends Endpoint> {
  readonly params: Readonly<Record<ParameterNames<Key>, string>>;
  readonly query: E extends { query: infer Query extends z.ZodType } ? z.output<Query> : unknown;
  readonly body: E extends { request: infer Body }
    ? Body extends z.ZodType
      ? z.output<Body>
      : Body extends MediaBody
        ? Buffer
        : never
    : undefined;
  /** The requesting node; undefined for clients of the node's own socket. */
  readonly from?: string | undefined;
  /** The user of a session; undefined for root and other nodes. */
  readonly user?: RemoteUser | undefined;
  /** The header Last-Event-ID: a reader of server-sent events returns. */
  readonly lastEventId?: string | undefined;
  /** Aborted when the client disconnects or has its answer. */
  readonly signal: AbortSignal;
}

interface ReplyOptions {
  /** The media type, if it differs from the endpoint's. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer with its own status, media type or headers. */
export class Reply {
  readonly status: number;
  readonly body: unknown;
  readonly options: ReplyOptions;

  constructor(status: number, body?: unknown, options: ReplyOptions = {}) {
    this.status = status;
    this.body = body;
    this.options = options;
  }
}

/** The body of status 200, nothing for an endpoint with only 204, or a Reply. */
type Outcome<Answers> =
  | Reply
  | (Answers extends { 200: infer Body }
      ? Body extends z.ZodType
        ? z.input<Body>
        : string | Buffer | Readable
      : Answers extends { 204: null }
        ? void
        : never);

type Handler<Key extends string, E extends Endpoint> = E['answers'] extends { 101: null }
  ? (params: Asked<Key, E>['params']) => Promise<Duplex>
  : (asked: Asked<Key, E>) => Outcome<E['answers']> | Promise<Outcome<E['answers']>>;

/** An implementation of each endpoint of a table. */
export type Handlers<Table extends Readonly<Record<string, Endpoint>>> = {
  readonly [Key in keyof Table & string]: Handler<Key, Table[Key]>;
};

export type ApiHandlers = Handlers<AllEndpoints>;
