import { createHash, createHmac, randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import { AppError } from '../errors/app-error.ts';
import { CLUSTER_KEY_BYTES } from './sealed-store.ts';

/**
 * The token by which a node joins a cluster.
 *
 * It contains the store's URL and a secret made for it. The store has the cluster's key, sealed
 * with that secret, during the token's lifetime. Either part alone is useless: the store, its files
 * and its backups do not open without the token, and a token opens nothing after the key was taken
 * or has expired. During its lifetime a token is worth as much as the key, so it must not be kept.
 */
export interface JoinToken {
  readonly id: string;
  readonly secret: Uint8Array;
  /** Milliseconds since the epoch by the store's clock, the only common one. */
  readonly expiresAtMs: number;
  readonly cluster: string;
  /** The store's URL, which may have a password. */
  readonly url: string;
}

const PREFIX = 'gntj1.';
const ID_BYTES = 16;
const SECRET_BYTES = 32;
const TIME_BYTES = 8;
const UUID_BYTES = 16;
const SUM_BYTES = 8;
const HEAD_BYTES = ID_BYTES + SECRET_BYTES + TIME_BYTES + UUID_BYTES;
/** The longest URL of a store, and the rest. */
const MAX_TOKEN_CHARACTERS = 4096;

export function makeJoinToken(given: Omit<JoinToken, 'id' | 'secret'>): JoinToken {
  return {
    ...given,
    id: randomBytes(ID_BYTES).toString('hex'),
    secret: randomBytes(SECRET_BYTES),
  };
}

export function encodeJoinToken({ id, secret, expiresAtMs, cluster, url }: JoinToken): string {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeBigUInt64BE(BigInt(expiresAtMs));
  const uuid = Buffer.from(cluster.replaceAll('-', ''), 'hex');
  const content = Buffer.concat([Buffer.from(id, 'hex'), secret, time, uuid, Buffer.from(url)]);
  return PREFIX + Buffer.concat([content, sumOf(content)]).toString('base64url');
}

/** @throws AppError TOKEN_INVALID, which never quotes the token */
export function parseJoinToken(text: string): JoinToken {
  const word = text.trim();
  if (word.length > MAX_TOKEN_CHARACTERS) throw invalid('it is too long');
  if (/^gntj\d+\./.test(word) && !word.startsWith(PREFIX)) throw invalid('another release made it');
  if (!word.startsWith(PREFIX)) throw invalid('it has the wrong prefix');
  const encoded = word.slice(PREFIX.length);
  const bytes = Buffer.from(encoded, 'base64url');
  const content = bytes.subarray(0, -SUM_BYTES);
  const isWhole =
    bytes.toString('base64url') === encoded &&
    content.length > HEAD_BYTES &&
    sumOf(content).equals(bytes.subarray(-SUM_BYTES));
  if (!isWhole) throw invalid('it is truncated or altered');
  const parts = partsOf(content);
  return {
    id: parts.id.toString('hex'),
    secret: parts.secret,
    expiresAtMs: Number(parts.time.readBigUInt64BE()),
    cluster: parts.uuid.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    url: parts.url.toString(),
  };
}

export function sealForToken(token: JoinToken, key: Uint8Array): Buffer {
  const nonce = nacl.randomBytes(nacl.secretbox.nonceLength);
  return Buffer.concat([nonce, nacl.secretbox(key, nonce, sealingKeyOf(token))]);
}

/** @throws AppError TOKEN_INVALID when the token was altered */
export function openWithToken(token: JoinToken, sealed: Uint8Array): Uint8Array {
  const nonce = sealed.subarray(0, nacl.secretbox.nonceLength);
  const box = sealed.subarray(nacl.secretbox.nonceLength);
  const isBox = nonce.length === nacl.secretbox.nonceLength;
  const key = isBox ? nacl.secretbox.open(box, nonce, sealingKeyOf(token)) : null;
  if (key?.length === CLUSTER_KEY_BYTES) return key;
  throw invalid('the token or its entry in the store was altered');
}

/** Covers the whole token, so that no part can be exchanged. */
function sealingKeyOf({ secret, ...said }: JoinToken): Uint8Array {
  const { id, expiresAtMs, cluster, url } = said;
  return createHmac('sha256', secret)
    .update(JSON.stringify(['gnt join token', id, expiresAtMs, cluster, url]))
    .digest();
}

function partsOf(content: Buffer) {
  let at = 0;
  const take = (length: number): Buffer => content.subarray(at, (at += length));
  return {
    id: take(ID_BYTES),
    secret: take(SECRET_BYTES),
    time: take(TIME_BYTES),
    uuid: take(UUID_BYTES),
    url: content.subarray(HEAD_BYTES),
  };
}

function sumOf(content: Uint8Array): Buffer {
  return createHash('sha256')
    .update('gnt join token\n')
    .update(content)
    .digest()
    .subarray(0, SUM_BYTES);
}

function invalid(reason: string): AppError {
  return new AppError('TOKEN_INVALID', `not a join token: ${reason}`, {
    hint: 'Give the whole token that gnt-cluster join-token printed, or create a new one: gnt-cluster join-token',
  });
}
