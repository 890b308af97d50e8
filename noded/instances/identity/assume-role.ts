import { z } from 'zod';
import { formatAws, formatAwsTime } from '#shared/contract/cloud-credentials.ts';
import { reveal, Secret } from '#shared/secret/secret.ts';
import { askSts } from './ask-sts.ts';
import { type Expiring, ExchangeFailure, MIN_REST_MS } from './credential-cache.ts';
import { readXml, textAt } from './read-xml.ts';

/** Seconds. AWS's default, which every role allows. */
const DURATION_S = 3600;
/** AWS's rule for names of sessions, which its logs show. */
const SESSION_NAME = /^[\w+=,.@-]{2,64}$/;
const printable = (max: number) =>
  z
    .string()
    .regex(/^[\x21-\x7e]+$/)
    .max(max);

const credentials = z.object({
  AccessKeyId: z.string().regex(/^\w{8,128}$/),
  SecretAccessKey: printable(512),
  SessionToken: printable(16_384),
  Expiration: z.iso.datetime({ offset: true }),
});
const RESULT = 'AssumeRoleWithWebIdentityResult/Credentials';

export interface AwsCredentials extends Expiring {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  readonly sessionToken: Secret;
  readonly receivedAtMs: number;
}

export interface RoleRequest {
  readonly sts: string;
  readonly role: string;
  readonly token: string;
  readonly instance: { readonly name: string; readonly uuid: string };
  readonly certificateAuthority: string | undefined;
  readonly nowMs: number;
}

/** Exchanges a token for the credentials of a role (STS API 2011-06-15). @throws ExchangeFailure */
export async function assumeRole(request: RoleRequest): Promise<AwsCredentials> {
  const { sts, role, token, instance, certificateAuthority, nowMs } = request;
  const answer = await askSts(
    {
      url: sts,
      body: String(
        new URLSearchParams({
          Action: 'AssumeRoleWithWebIdentity',
          Version: '2011-06-15',
          RoleArn: role,
          RoleSessionName: SESSION_NAME.test(instance.name) ? instance.name : instance.uuid,
          DurationSeconds: String(DURATION_S),
          WebIdentityToken: token,
        }),
      ),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/xml' },
      secrets: [token],
      certificateAuthority,
    },
    readError,
  );
  return readCredentials(answer, nowMs);
}

/** @throws ExchangeFailure, without any part of the answer */
export function readCredentials(answer: string, nowMs: number): AwsCredentials {
  const root = readXml(answer);
  const given = Object.fromEntries(
    Object.keys(credentials.shape).map((name) => [name, textAt(root, `${RESULT}/${name}`)?.trim()]),
  );
  const parsed = credentials.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ExchangeFailure(`the STS answered without valid ${String(issue?.path[0])}`);
  }
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = parsed.data;
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: new Secret(SecretAccessKey),
    sessionToken: new Secret(SessionToken),
    receivedAtMs: nowMs,
    expiresAtMs: requireLife(Date.parse(Expiration), nowMs),
  };
}

/** Longest session of AWS, with an hour for differences between clocks. */
const MAX_LIFE_MS = 13 * 3_600_000;

/** @throws ExchangeFailure for credentials that the cache would not serve */
export function requireLife(expiresAtMs: number, nowMs: number): number {
  const lifeMs = expiresAtMs - nowMs;
  if (lifeMs >= MIN_REST_MS && lifeMs <= MAX_LIFE_MS) return expiresAtMs;
  const shown = `${Math.round(lifeMs / 1000)} s`;
  throw new ExchangeFailure(
    `the credentials expire ${shown} after the node's time, not within 1 minute to 13 hours; compare the clocks`,
  );
}

function readError(text: string): { readonly code?: unknown; readonly reason?: unknown } {
  const root = readXml(text);
  // Ceph sends the element Error alone.
  const at = (name: string): string | undefined =>
    textAt(root, `Error/${name}`) ?? textAt(root, name);
  return { code: at('Code'), reason: at('Message') };
}

/** Returns IMDS's document of a role's credentials. */
export function describeCredentials(given: AwsCredentials): string {
  return formatAws({
    Code: 'Success',
    LastUpdated: formatAwsTime(given.receivedAtMs),
    Type: 'AWS-HMAC',
    AccessKeyId: given.accessKeyId,
    SecretAccessKey: reveal(given.secretAccessKey),
    Token: reveal(given.sessionToken),
    Expiration: formatAwsTime(given.expiresAtMs),
  });
}
