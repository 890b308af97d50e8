import nacl from 'tweetnacl';
import { z } from 'zod';
import { parseJson } from '#shared/json/parse-json.ts';

/**
 * Sealed part of a hello, and of the welcome that answers it. Both name sender, receiver and
 * stream.
 */
const greeting = z.strictObject({
  kind: z.enum(['hello', 'welcome']),
  stream: z.string(),
  from: z.string(),
  to: z.string(),
  /** Public key for this stream, in base64. */
  key: z.string(),
  /** A welcome contains the key of the hello that it answers. */
  answers: z.string().nullable(),
});
export type Greeting = z.infer<typeof greeting>;

/** Names, two keys and the stream's id fit in. */
const MAX_SEALED_BYTES = 2048;
const { nonceLength } = nacl.box;

/** @param shared secret of the two nodes' own keys (`nacl.box.before`) */
export function sealGreeting(message: Greeting, shared: Uint8Array): Buffer {
  const nonce = nacl.randomBytes(nonceLength);
  const plain = Buffer.from(JSON.stringify(message));
  return Buffer.concat([nonce, nacl.box.after(plain, nonce, shared)]);
}

/** @returns undefined unless the sender sealed it for this receiver and stream */
export function openGreeting(
  sealed: Buffer,
  expected: Pick<Greeting, 'kind' | 'stream' | 'from' | 'to'>,
  shared: Uint8Array,
): Greeting | undefined {
  if (sealed.length <= nonceLength || sealed.length > MAX_SEALED_BYTES) return undefined;
  const nonce = sealed.subarray(0, nonceLength);
  const plain = nacl.box.open.after(sealed.subarray(nonceLength), nonce, shared);
  if (plain === null) return undefined;
  const parsed = greeting.safeParse(parseJson(Buffer.from(plain).toString()));
  if (!parsed.success) return undefined;
  const { kind, stream, from, to } = parsed.data;
  const isMeant =
    kind === expected.kind &&
    stream === expected.stream &&
    from === expected.from &&
    to === expected.to;
  return isMeant ? parsed.data : undefined;
}

/** Decodes the public key of a greeting or node record; undefined when invalid. */
export function decodeKey(text: string): Uint8Array | undefined {
  const key = Buffer.from(text, 'base64');
  return key.length === nacl.box.publicKeyLength ? key : undefined;
}
