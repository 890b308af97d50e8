import type { Duplex } from 'node:stream';
import { z } from 'zod';

/** Bytes of a media type: nothing here looks into them. */
export interface Media {
  readonly type: string;
}
/** A body that is taken as bytes. */
export interface MediaBody extends Media {
  readonly maxBytes: number;
}
/** What a status comes with: JSON of a schema, bytes, or nothing. */
type Answer = z.ZodType | Media | null;
type Answers = Readonly<Record<number, Answer>>;

/**
 * `{name}` is one part of a path, `{*path}` the rest of it, slashes included, which may be nothing.
 */
type ParameterNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? (Name extends `*${infer Tail}` ? Tail : Name) | ParameterNames<Rest>
  : never;

export interface ApiRequest<Path extends string, Query, Body> {
  readonly params: Readonly<Record<ParameterNames<Path>, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The other node that asks; undefined where somebody on this one does. */
  readonly from?: string | undefined;
  /** Aborted when the client has gone, or has its answer. */
  readonly signal: AbortSignal;
}

export interface Reply {
  /** One of the table, or another one where bytes are passed on as they came. */
  readonly status: number;
  /** What the table's schema describes, or bytes. */
  readonly body?: unknown;
  /** The media type, where it is another one than the table says. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface ApiRouteOf<
  Path extends string,
  Query extends z.ZodObject,
  Body extends z.ZodType | MediaBody | undefined,
> {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: Path;
  readonly summary: string;
  readonly query?: Query;
  readonly request?: Body;
  /** Every answer that is no failure, by status. */
  readonly answers: Answers;
  readonly handle: (
    request: ApiRequest<
      Path,
      z.output<Query>,
      Body extends z.ZodType ? z.output<Body> : Body extends MediaBody ? Buffer : undefined
    >,
  ) => Reply | Promise<Reply>;
}

/** A route as the server and the document see it. */
export interface AnyApiRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly request?: z.ZodType | MediaBody;
  readonly answers: Answers;
  handle(request: ApiRequest<string, unknown, unknown>): Reply | Promise<Reply>;
}
/** A path that becomes a raw stream by an upgrade. */
export interface StreamRoute {
  readonly path: string;
  readonly summary: string;
  open(params: Readonly<Record<string, string>>): Promise<Duplex>;
}

export interface ApiRoutes {
  readonly routes: readonly AnyApiRoute[];
  readonly streams: readonly StreamRoute[];
}

/**
 * One route: what it is called by, what it takes and gives, and who answers. The server and the
 * document are made of these.
 */
export function route<
  const Path extends string,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType | MediaBody | undefined = undefined,
>(given: ApiRouteOf<Path, Query, Body>): AnyApiRoute {
  // The server gives each handler what the route's own schemas made of the request.
  return given as unknown as AnyApiRoute;
}

/** The commonest one: a question that is answered with JSON. */
export function question<const Path extends string, T extends z.ZodType>(
  path: Path,
  summary: string,
  answer: T,
  handle: (
    params: Readonly<Record<ParameterNames<Path>, string>>,
  ) => z.input<T> | Promise<z.input<T>>,
): AnyApiRoute {
  return route({
    ...{ method: 'GET', path, summary, answers: { 200: answer } },
    handle: async ({ params }) => ({ status: 200, body: await handle(params) }),
  });
}

/** A query parameter that is 1 or not there. */
export function flag(description: string): z.ZodOptional<z.ZodEnum> {
  return z.enum(['0', '1'], { error: 'expected 0 or 1' }).describe(description).optional();
}

/** A query parameter that is a number. */
export function wholeNumber(description: string, max: number): z.ZodOptional<z.ZodCoercedNumber> {
  const error = `expected a whole number from 0 to ${max}`;
  return z.coerce
    .number({ error })
    .int({ error })
    .min(0, { error })
    .max(max, { error })
    .describe(description)
    .optional();
}
