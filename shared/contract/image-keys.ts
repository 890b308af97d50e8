import { z } from 'zod';
import { base64 } from './primitives.ts';

/** An operator's name for a key that signs images and packages. */
export const imageKeyName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'not a key name');
export const MAX_IMAGE_KEYS = 16;
/** Characters of the output of `minisign -G` or `gpg --armor --export`. */
export const MAX_IMAGE_KEY_LENGTH = 65_536;

/** A trusted public key, decoded. */
export const imageKey = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('minisign'),
    /** minisign's key number: 8 bytes in hex. */
    id: z.string().regex(/^[0-9a-f]{16}$/),
    /** Ed25519: 32 bytes. */
    publicKey: base64.length(44),
  }),
  z.object({
    kind: z.literal('openpgp'),
    /** OpenPGP packets (RFC 9580), as gpgv reads them. */
    keyring: base64.max(MAX_IMAGE_KEY_LENGTH),
  }),
]);
export type ImageKey = z.infer<typeof imageKey>;
export type ImageKeys = Readonly<Record<string, ImageKey>>;
