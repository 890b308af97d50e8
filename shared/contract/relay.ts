import { z } from 'zod';
import { GIB } from '../units/bytes.ts';

export const relayName = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, 'not a relay name');
export const MAX_RELAYS = 32;

/** Methods that a relay may allow. TRACE and CONNECT would show or bypass the added credential. */
export const RELAY_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const relayMethod = z.enum(RELAY_METHODS);
export type RelayMethod = z.infer<typeof relayMethod>;
/** Git, package managers and most APIs need no others. */
export const DEFAULT_RELAY_METHODS: readonly RelayMethod[] = ['GET', 'HEAD', 'POST'];

/** Limits of a relay that has none of its own. */
export const DEFAULT_RELAY_RATE = 600;
export const DEFAULT_RELAY_BYTES = GIB;
export const DEFAULT_RELAY_TIMEOUT_S = 3600;

/** The credential of a request. The secret itself is in the memory of the nodes only. */
export const relayAuth = z.discriminatedUnion('kind', [
  /** `Authorization: Bearer SECRET`. */
  z.strictObject({ kind: z.literal('bearer') }),
  /** `Authorization: Basic` of the user and the secret (RFC 7617). */
  z.strictObject({
    kind: z.literal('basic'),
    user: z.string().regex(/^[\x21-\x39\x3b-\x7e]{1,256}$/, 'not a user: use ASCII without colon'),
  }),
  /** The secret alone in a header. */
  z.strictObject({
    kind: z.literal('header'),
    name: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, 'not a header name in lower case'),
  }),
  /** The secret alone in a parameter of the query. */
  z.strictObject({
    kind: z.literal('query'),
    name: z.string().regex(/^[A-Za-z][\w.-]{0,63}$/, 'not a name of a query parameter'),
  }),
]);
export type RelayAuth = z.infer<typeof relayAuth>;

/** Folder or file below the URL, percent-encoded. */
const relayPath = z
  .string()
  .max(1024)
  .regex(
    /^(?:\/(?!\.{1,2}(?:\/|$))(?:[\w.~!$&'()*+,;=:@-]|%[\dA-F]{2})*)+$/i,
    'expected a path that begins with a slash, without . and ..',
  );

/** Users, queries and fragments have no place beside the credential and the guest's own query. */
const relayUrl = z
  .string()
  .max(1024)
  .refine((text) => /^https?:\/\/[^\s@?#\\]+$/.test(text) && URL.canParse(text), {
    error: 'not an http or https URL without user, query and fragment',
  });

/** A server that instances reach through the metadata service, with a credential of the node. */
export const relaySettings = z.strictObject({
  url: relayUrl,
  auth: relayAuth,
  /** `tagged`: instances with the tag `gnt:relay=NAME`. */
  access: z.enum(['tagged', 'all']),
  /** Absent: DEFAULT_RELAY_METHODS. */
  methods: z.array(relayMethod).min(1).max(RELAY_METHODS.length).optional(),
  /** Allowed paths and everything below them. Absent: all below the URL. */
  paths: z.array(relayPath).min(1).max(16).optional(),
  /** Requests per minute of one instance. Absent: DEFAULT_RELAY_RATE. */
  rate: z.number().int().min(1).max(100_000).optional(),
  /** Bytes of a body in either direction. Absent: DEFAULT_RELAY_BYTES. */
  maxBytes: z
    .number()
    .int()
    .min(1)
    .max(2 ** 50)
    .optional(),
  /** Seconds of a request. Absent: DEFAULT_RELAY_TIMEOUT_S. */
  timeoutS: z.number().int().min(1).max(86_400).optional(),
});
export type RelaySettings = z.infer<typeof relaySettings>;

/** Bounds the forms of a secret in which answers are searched. */
const MAX_RELAY_SECRET_LENGTH = 4096;
/** A shorter secret would match ordinary bytes of answers, and mask them. */
const MIN_RELAY_SECRET_LENGTH = 8;

/** A value for one header line. */
export const relaySecret = z
  .string()
  .min(MIN_RELAY_SECRET_LENGTH, `shorter than ${MIN_RELAY_SECRET_LENGTH} characters`)
  .max(MAX_RELAY_SECRET_LENGTH, `longer than ${MAX_RELAY_SECRET_LENGTH} characters`)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'not one line of printable ASCII');

export const giveRelaySecret = z.strictObject({ secret: relaySecret });

/** Nodes that have a secret now, and nodes that did not take it. */
export const relaySecretGiven = z.object({
  nodes: z.array(z.string()),
  missing: z.array(z.object({ node: z.string(), reason: z.string() })),
});
export type RelaySecretGiven = z.infer<typeof relaySecretGiven>;
