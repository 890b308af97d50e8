import { z } from 'zod';
import { parseJson } from '../json/parse-json.ts';

/** A body that has no schema. */
export interface Media {
  readonly type: string;
}
export interface MediaBody extends Media {
  readonly maxBytes: number;
}

export interface Endpoint {
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly request?: z.ZodType | MediaBody;
  /** The body of each status below 400. Status 101 turns the connection into a raw stream. */
  readonly answers: Readonly<Record<number, z.ZodType | Media | null>>;
  /** Other nodes may call it. Otherwise only clients of the node's own socket may. */
  readonly forPeers?: true;
  /** Users of the web page with this right may call it. Absent: none may. */
  readonly access?: WebAccess;
}

/**
 * - `root`: only sessions of `gnt-cluster web`.
 * - `cluster`: also users who are not bound to instances.
 * - `instance`: also bound users, for instances of theirs. The path has a `{name}`.
 * - `own`: every user. The answer contains only records that the user may see.
 * - `all`: every user, with the same answer.
 */
export type WebAccess = 'root' | 'cluster' | 'instance' | 'own' | 'all';

export type Method = 'GET' | 'POST' | 'DELETE';
/** `{name}` is one segment of a path. `{*path}` is the rest, which may contain slashes. */
export type Endpoints = Readonly<Record<`${Method} /${string}`, Endpoint>>;

export const LINES = { type: 'application/x-ndjson' } as const;
/** Server-sent events (HTML standard, section 9.2); see cluster-event.ts. */
export const EVENTS = { type: 'text/event-stream' } as const;
export const TEXT = { type: 'text/plain' } as const;
export const BYTES = { type: 'application/octet-stream' } as const;

export function isUpgrade({ answers }: Endpoint): boolean {
  return 101 in answers;
}

/** Returns the schema of a query parameter that is 1 or absent. */
export function flag(description: string): z.ZodOptional<z.ZodEnum<{ 0: '0'; 1: '1' }>> {
  return z.enum(['0', '1'], { error: 'expected 0 or 1' }).describe(description).optional();
}

export function wholeNumber(
  description: string,
  max: number,
): z.ZodOptional<z.ZodCoercedNumber<number | string>> {
  const error = `expected a whole number from 0 to ${max}`;
  return z.coerce
    .number<number | string>({ error })
    .int({ error })
    .min(0, { error })
    .max(max, { error })
    .describe(description)
    .optional();
}

/** Returns the schema of a query parameter that contains JSON. */
export function jsonText<T>(
  schema: z.ZodType<T>,
  maxLength: number,
  message: string,
): z.ZodType<T, string> {
  return z
    .string()
    .max(maxLength)
    .transform((text, context): unknown => {
      const parsed = schema.safeParse(parseJson(text));
      if (parsed.success) return parsed.data;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .pipe(schema);
}
