import { z } from 'zod';
import { base64 } from './primitives.ts';

/** An operator's name for a key that images and packages may be signed with. */
export const imageKeyName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'not a key name');
export const MAX_IMAGE_KEYS = 16;
/** As the operator gives it: what `minisign -G` or `gpg --armor --export` wrote. */
export const MAX_IMAGE_KEY_LENGTH = 65_536;

/** A public key whose signatures of images and packages count, taken apart. */
export const imageKey = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('minisign'),
    /** 8 bytes that tell keys apart, in hex, as minisign numbers them. */
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
