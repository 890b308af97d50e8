import { z } from 'zod';
import { AppError } from '../errors/app-error.ts';
import { awsRole, awsSettings, googleAccount, googleSettings } from './cloud-credentials.ts';
import { audience, uuid } from './primitives.ts';

/** Signature algorithms of tokens (RFC 7518, 3.1). */
const algorithm = z.enum(['ES256', 'RS256']);
export type TokenAlgorithm = z.infer<typeof algorithm>;

/** Seconds. A shorter life would be over before a busy verifier reads the token. */
const MIN_TOKEN_TTL_S = 60;
/** Seconds; also the default. A verifier that knows no revocations accepts a token this long. */
export const MAX_TOKEN_TTL_S = 900;
export const MAX_AUDIENCES = 32;
/** Shown to a guest after a failure of the node, whose reason is in the log only. */
export const TOKENS_UNAVAILABLE = 'the node cannot issue tokens now';
export const MAX_REVOKED = 10_000;

/** SPIFFE ID, 2.1: the authority of `spiffe://TRUST-DOMAIN/…`. */
export const trustDomain = z
  .string()
  .max(255)
  .regex(/^[a-z0-9._-]+$/, 'not a trust domain: use lower-case letters, digits, dots and dashes');

/** OpenID Connect Discovery, 3: https, without query and fragment. */
export const issuer = z
  .string()
  .max(512)
  .refine((text) => /^https:\/\/[^\s@?#\\]+[^\s@?#\\/]$/.test(text) && URL.canParse(text), {
    error: 'not an https URL without user, query, fragment and final slash',
  });

/** Tells whether a tag may grant permissions here, so that only administrators set it. */
export function isReservedTag(tag: string): boolean {
  return tag.startsWith('gnt:');
}

/** `tagged`: instances with the tag `gnt:identity` or `gnt:identity=AUDIENCE`. */
export const identityPolicy = z.enum(['no', 'yes', 'tagged']);

/** Settings of signed identities in the cluster's record. */
export const identitySettings = z.strictObject({
  policy: identityPolicy,
  /** Absent: the cluster's name. */
  trustDomain: trustDomain.optional(),
  /** Absent: `https://TRUST-DOMAIN`. */
  issuer: issuer.optional(),
  /** Allowed audiences. Absent: all. */
  audiences: z.array(audience).max(MAX_AUDIENCES).optional(),
  /** Instances that get no identity, by UUID. */
  revoked: z.array(uuid).max(MAX_REVOKED).optional(),
  /** Credentials of AWS, or of a service compatible with it. Absent: none. */
  aws: awsSettings.optional(),
  /** Credentials of Google Cloud. Absent: none. */
  google: googleSettings.optional(),
});
export type IdentitySettings = z.infer<typeof identitySettings>;

/** Changes of the settings. `null` unsets a value; an empty list of audiences allows all. */
export const identityChanges = z.strictObject({
  policy: identityPolicy.optional(),
  trustDomain: trustDomain.nullable().optional(),
  issuer: issuer.nullable().optional(),
  audiences: z.array(audience).max(MAX_AUDIENCES).optional(),
  /** By UUID; false ends a revocation. */
  revoked: z.record(uuid, z.boolean()).optional(),
  /** Replaces the former settings as a whole. */
  aws: awsSettings.nullable().optional(),
  google: googleSettings.nullable().optional(),
});
export type IdentityChanges = z.infer<typeof identityChanges>;

/** Part of a view. Absent without permission for an identity. */
export const viewIdentity = z.strictObject({
  /** EC2's identity document and its signatures. Absent when they could not be made. */
  ec2: z
    .strictObject({
      document: z.string().max(16_384),
      /** Base64 of RSA with SHA-256. */
      signature: z.string().max(1024),
      /** Base64 of a PKCS#7 message that contains the document. */
      pkcs7: z.string().max(65_536),
    })
    .optional(),
  /** Absent: the cluster's name. */
  region: z.string().max(32).optional(),
  /** Absent: the instance has no role. */
  aws: z.strictObject({ role: awsRole }).optional(),
  google: z.strictObject({ account: googleAccount.nullable() }).optional(),
});
export type ViewIdentity = z.infer<typeof viewIdentity>;

/** metad → noded, in the query of GET /v1/instances/{uuid}/identity/token, with these names. */
export interface TokenRequest {
  readonly audience: string;
  readonly ttl: number;
  readonly alg: TokenAlgorithm;
  /** `full` adds Google's claims about the instance. */
  readonly format: 'standard' | 'full';
}

function isTtl(seconds: number): boolean {
  return seconds >= MIN_TOKEN_TTL_S && seconds <= MAX_TOKEN_TTL_S;
}

const tokenRequest = z.object({
  audience,
  ttl: z
    .string()
    .refine((text) => /^\d{1,4}$/.test(text) && isTtl(Number(text)), {
      error: `not a whole number of seconds from ${MIN_TOKEN_TTL_S} to ${MAX_TOKEN_TTL_S}`,
    })
    .transform(Number)
    .default(MAX_TOKEN_TTL_S),
  alg: algorithm.default('ES256'),
  format: z.enum(['standard', 'full']).default('standard'),
});

/**
 * Reads a request for a token from a query. Ignores other names, which clients of clouds send.
 * @throws AppError VALIDATION that names the parameter, without its value
 */
export function parseTokenRequest(query: URLSearchParams): TokenRequest {
  const given = new Map<string, string>();
  for (const name of Object.keys(tokenRequest.shape)) {
    const [value, ...others] = query.getAll(name);
    if (others.length > 0) throw new AppError('VALIDATION', `${name}: given more than once`);
    if (value !== undefined) given.set(name, value);
  }
  if (!given.has('audience'))
    throw new AppError('VALIDATION', 'audience: missing; ask with ?audience=URL of the verifier');
  const parsed = tokenRequest.safeParse(Object.fromEntries(given));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new AppError('VALIDATION', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
}

/** Returns the trust domain and the issuer in force. */
export function namesOfIdentity(cluster: {
  readonly name: string;
  readonly identity?: IdentitySettings | undefined;
}): { readonly trustDomain: string; readonly issuer: string } {
  const domain = cluster.identity?.trustDomain ?? cluster.name.toLowerCase();
  return { trustDomain: domain, issuer: cluster.identity?.issuer ?? `https://${domain}` };
}
