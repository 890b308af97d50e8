import { createPublicKey, verify } from 'node:crypto';
import type { ImageKey } from '#shared/contract/image-keys.ts';
import { SignatureProblem } from './signature-problem.ts';

/*
 * Formats of minisign (https://jedisct1.github.io/minisign/), parsed without its program: two
 * fixed-size blocks in base64, with Ed25519 of the host's OpenSSL.
 */
export type MinisignKey = Extract<ImageKey, { kind: 'minisign' }>;

export interface MinisignSignature {
  readonly keyId: string;
  /** The signature of the BLAKE2b-512 digest of the content. */
  readonly signature: Buffer;
  /** Covered by the global signature, unlike the comment at the top of the file. */
  readonly trustedComment: string;
  readonly globalSignature: Buffer;
}

/** Ed25519 over the whole content, which would have to be in memory. */
const LEGACY = 'Ed';
const PREHASHED = 'ED';
const ALGORITHM_BYTES = 2;
const KEY_ID_BYTES = 8;
const SIGNATURE_BYTES = 64;
const PUBLIC_KEY_BYTES = 32;
const TRUSTED_COMMENT = 'trusted comment: ';
/** `untrusted comment: …`, signature, trusted comment, global signature. */
const SIGNATURE_LINES = 4;

/**
 * Parses the public key of a file `minisign.pub`, or its second line alone.
 * @returns undefined for an invalid key
 */
export function parseMinisignKey(text: string): MinisignKey | undefined {
  const lines = text.trim().split(/\r?\n/);
  const block = readBlock(lines.at(-1), ALGORITHM_BYTES + KEY_ID_BYTES + PUBLIC_KEY_BYTES);
  const hasComment = lines.length === 2 && lines[0]?.startsWith('untrusted comment:');
  if (block?.algorithm !== LEGACY || !(lines.length === 1 || hasComment)) return undefined;
  return { kind: 'minisign', id: block.keyId, publicKey: block.rest.toString('base64') };
}

/** @throws SignatureProblem */
export function parseMinisignSignature(text: string): MinisignSignature {
  const lines = text.trimEnd().split(/\r?\n/);
  const [, signed, comment = '', global = ''] = lines;
  const block = readBlock(signed, ALGORITHM_BYTES + KEY_ID_BYTES + SIGNATURE_BYTES);
  const globalSignature = readBase64(global, SIGNATURE_BYTES);
  const isWhole = lines.length === SIGNATURE_LINES && comment.startsWith(TRUSTED_COMMENT);
  if (block === undefined || globalSignature === undefined || !isWhole)
    throw new SignatureProblem('not a minisign signature');
  if (block.algorithm === LEGACY)
    throw new SignatureProblem(
      'it does not sign a digest, as minisign does since 0.11: sign with minisign -SHm',
    );
  if (block.algorithm !== PREHASHED) throw new SignatureProblem('its algorithm is unknown');
  const trustedComment = comment.slice(TRUSTED_COMMENT.length);
  return { keyId: block.keyId, signature: block.rest, trustedComment, globalSignature };
}

/** @throws SignatureProblem when the key is not configured */
export function requireNamedKey(
  { keyId }: Pick<MinisignSignature, 'keyId'>,
  keys: ReadonlyMap<string, MinisignKey>,
): readonly [name: string, key: MinisignKey] {
  const named = [...keys].find(([, { id }]) => id === keyId);
  if (named === undefined)
    throw new SignatureProblem(
      `it was made by the key ${formatKeyId(keyId)}, which is not configured`,
    );
  return named;
}

/**
 * Verifies a signature of a content.
 * @param digest BLAKE2b-512 of the content
 * @returns the key, and its name
 * @throws SignatureProblem
 */
export function verifyMinisign(
  { keyId, signature, trustedComment, globalSignature }: MinisignSignature,
  keys: ReadonlyMap<string, MinisignKey>,
  digest: Buffer,
): readonly [name: string, key: MinisignKey] {
  const named = requireNamedKey({ keyId }, keys);
  const [, key] = named;
  const x = Buffer.from(key.publicKey, 'base64').toString('base64url');
  const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  if (!verify(null, digest, publicKey, signature))
    throw new SignatureProblem('it signs other content');
  const commented = Buffer.concat([signature, Buffer.from(trustedComment)]);
  if (!verify(null, commented, publicKey, globalSignature))
    throw new SignatureProblem('its trusted comment was changed');
  return named;
}

/** Formats the id as minisign shows it: the last byte first. */
function formatKeyId(keyId: string): string {
  return Buffer.from(keyId, 'hex').reverse().toString('hex').toUpperCase();
}

function readBlock(
  line: string | undefined,
  length: number,
): { readonly algorithm: string; readonly keyId: string; readonly rest: Buffer } | undefined {
  const bytes = readBase64(line ?? '', length);
  if (bytes === undefined) return undefined;
  const rest = ALGORITHM_BYTES + KEY_ID_BYTES;
  return {
    algorithm: bytes.toString('latin1', 0, ALGORITHM_BYTES),
    keyId: bytes.toString('hex', ALGORITHM_BYTES, rest),
    rest: bytes.subarray(rest),
  };
}

/** Decodes base64; undefined for another length or another spelling. */
function readBase64(text: string, length: number): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === length && bytes.toString('base64') === text ? bytes : undefined;
}
