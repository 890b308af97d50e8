import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import type { TokenAlgorithm } from '#shared/contract/identity.ts';
import { run } from '#shared/process/run.ts';
import type { KeyGeneration } from '../../records/identity-keys.ts';

/** A public key with the members that verifiers need (RFC 7517, 4). */
export interface PublishedKey {
  readonly kid: string;
  readonly kty: string;
  readonly alg: TokenAlgorithm;
  readonly [member: string]: string;
}

interface SigningKey {
  readonly key: KeyObject;
  readonly published: PublishedKey;
}
export type SigningKeys = Readonly<Record<TokenAlgorithm, SigningKey>>;

export function parseKeys({ es256, rs256 }: KeyGeneration): SigningKeys {
  return { ES256: parseKey(es256, 'ES256'), RS256: parseKey(rs256, 'RS256') };
}

function parseKey(pem: string, alg: TokenAlgorithm): SigningKey {
  const key = createPrivateKey(pem);
  const { kty = '', crv, x, y, e, n } = createPublicKey(key).export({ format: 'jwk' });
  // The members of RFC 7638 in its order, whose digest is the key's name.
  const members = kty === 'EC' ? { crv, kty, x, y } : { e, kty, n };
  const kid = createHash('sha256').update(JSON.stringify(members)).digest('base64url');
  return { key, published: { ...present(members), kty, kid, alg } };
}

function present(members: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
}

/** Returns a compact JWS of the claims (RFC 7515, 7.1). Signs in a thread of its own. */
export async function signToken(claims: object, { key, published }: SigningKey): Promise<string> {
  const header = { alg: published.alg, kid: published.kid, typ: 'JWT' };
  const encoded = [header, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const input = encoded.join('.');
  const signature = await signBytes(Buffer.from(input), key);
  return `${input}.${signature.toString('base64url')}`;
}

/** Signs with SHA-256. ECDSA signatures have the form of RFC 7518, 3.4. */
export function signBytes(bytes: Buffer, key: KeyObject): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' }, (error, signature) =>
      error === null ? resolve(signature) : reject(error),
    );
  });
}

/**
 * Returns the base64 of a PKCS#7 message with the document and its signature, by openssl. The key
 * goes through a pipe; document and certificate are public.
 */
export async function signPkcs7(
  document: string,
  { rs256, certificate }: KeyGeneration,
): Promise<string> {
  const script =
    'exec openssl smime -sign -binary -nodetach -noattr -md sha256 -outform PEM ' +
    '-in <(printf %s "$1") -signer <(printf %s "$2") -inkey <(cat)';
  const args = ['-c', script, 'sign', document, certificate];
  const { stdout } = await run('bash', args, { input: rs256 });
  return stdout.replaceAll(/-----[A-Z0-9 ]+-----/g, '').trim();
}
