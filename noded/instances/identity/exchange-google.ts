import { z } from 'zod';
import { GOOGLE_IAM, GOOGLE_SCOPE, GOOGLE_STS } from '#shared/contract/cloud-credentials.ts';
import type { GoogleSettings } from '#shared/contract/cloud-credentials.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { reveal, Secret } from '#shared/secret/secret.ts';
import { requireLife } from './assume-role.ts';
import { askSts } from './ask-sts.ts';
import { type Expiring, ExchangeFailure } from './credential-cache.ts';

/** Seconds. Google's limit without a policy of the organization. */
const DURATION_S = 3600;
const accessToken = z
  .string()
  .max(16_384)
  .regex(/^[\x21-\x7e]+$/);
/** RFC 8693, 2.2.1. */
const exchanged = z.object({
  access_token: accessToken,
  token_type: z.string().regex(/^bearer$/i),
  /** Google leaves it out for some subject tokens. */
  expires_in: z.number().positive().default(DURATION_S),
});
const impersonated = z.object({
  accessToken,
  expireTime: z.iso.datetime({ offset: true }),
});

export interface GoogleToken extends Expiring {
  readonly accessToken: Secret;
}

export interface GoogleRequest {
  readonly settings: GoogleSettings;
  readonly account: string | undefined;
  readonly token: string;
  readonly certificateAuthority: string | undefined;
  readonly nowMs: number;
}

/**
 * Exchanges a token for an access token (RFC 8693), and this for one of a service account, if there
 * is one.
 * @throws ExchangeFailure
 */
export async function exchangeGoogle(request: GoogleRequest): Promise<GoogleToken> {
  const { settings, token, certificateAuthority, nowMs } = request;
  const answer = await askSts(
    {
      url: settings.sts ?? GOOGLE_STS,
      body: String(
        new URLSearchParams({
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          audience: settings.provider,
          scope: GOOGLE_SCOPE,
          requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
          subject_token: token,
        }),
      ),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      secrets: [token],
      certificateAuthority,
    },
    readOauthError,
  );
  const parsed = exchanged.safeParse(parseJson(Buffer.from(answer)));
  if (!parsed.success) throw notAToken(parsed.error);
  const { access_token, expires_in } = parsed.data;
  if (request.account !== undefined) return impersonate(request, request.account, access_token);
  const expiresAtMs = requireLife(nowMs + expires_in * 1000, nowMs);
  return { accessToken: new Secret(access_token), expiresAtMs };
}

/** @param server with or without a final slash */
export function accountUrl(server: string, account: string): string {
  const base = server.replace(/\/$/, '');
  return `${base}/v1/projects/-/serviceAccounts/${account}:generateAccessToken`;
}

async function impersonate(
  { settings, token, certificateAuthority, nowMs }: GoogleRequest,
  account: string,
  federated: string,
): Promise<GoogleToken> {
  const answer = await askSts(
    {
      url: accountUrl(settings.iam ?? GOOGLE_IAM, account),
      body: JSON.stringify({ scope: [GOOGLE_SCOPE], lifetime: `${DURATION_S}s` }),
      headers: { 'content-type': 'application/json', authorization: `Bearer ${federated}` },
      secrets: [token, federated],
      certificateAuthority,
    },
    readApiError,
  );
  const parsed = impersonated.safeParse(parseJson(Buffer.from(answer)));
  if (!parsed.success) throw notAToken(parsed.error);
  return {
    accessToken: new Secret(parsed.data.accessToken),
    expiresAtMs: requireLife(Date.parse(parsed.data.expireTime), nowMs),
  };
}

function notAToken({ issues: [issue] }: z.ZodError): ExchangeFailure {
  return new ExchangeFailure(
    `the server answered without valid ${issue?.path.join('.') || 'JSON'}`,
  );
}

function readOauthError(text: string): { readonly code?: unknown; readonly reason?: unknown } {
  const { data } = z
    .object({ error: z.unknown(), error_description: z.unknown() })
    .safeParse(parseJson(Buffer.from(text)));
  return { code: data?.error, reason: data?.error_description };
}

function readApiError(text: string): { readonly code?: unknown; readonly reason?: unknown } {
  const { data } = z
    .object({ error: z.object({ status: z.unknown(), message: z.unknown() }) })
    .safeParse(parseJson(Buffer.from(text)));
  return { code: data?.error.status, reason: data?.error.message };
}

/** Returns the answer of Google's metadata service. */
export function describeGoogleToken(given: GoogleToken, nowMs: number): string {
  return JSON.stringify({
    access_token: reveal(given.accessToken),
    expires_in: Math.max(0, Math.floor((given.expiresAtMs - nowMs) / 1000)),
    token_type: 'Bearer',
  });
}
