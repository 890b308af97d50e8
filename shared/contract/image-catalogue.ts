import { z } from 'zod';
import { loginUser } from './host-keys.ts';
import { IMAGE_FORMATS } from './image-formats.ts';
import { imageChecksum } from './opcode.ts';

/**
 * Names of images. A name has words with slashes between them. Each word begins with a letter or
 * digit, so that a name is never an absolute path, a URL or an option.
 */
const WORD = '[a-z0-9][a-z0-9._+-]{0,63}';
const NAME = `${WORD}(/${WORD}){0,3}`;
const MAX_NAME_LENGTH = 128;
export const imageName = z
  .string()
  .max(MAX_NAME_LENGTH)
  .regex(new RegExp(`^${NAME}$`), 'not an image name: expected words such as debian/12');
const CATALOGUE = '[a-z][a-z0-9-]{0,31}';
export const catalogueName = z
  .string()
  .regex(new RegExp(`^${CATALOGUE}$`), 'not a catalogue name: expected a-z, 0-9 and -');
/** A name as operators type it: `debian/12` or `CATALOGUE:debian/12`. */
export const imageReference = z
  .string()
  .max(2 * MAX_NAME_LENGTH)
  .regex(
    new RegExp(`^(${CATALOGUE}:)?${NAME}$`),
    'not an image name: list the images with gnt-image list',
  );

/** The catalogue of the package, and the imported images. */
export const BUILT_IN = 'built-in';
export const IMPORTED = 'imported';

/** Shown in terminals: no control characters, and none that change the direction of text. */
const plainText = z.string().regex(/^[^\p{C}\p{Zl}\p{Zp}]{0,200}$/u, 'not plain text');
/** In normal form and without a login, because catalogues are public. */
const webUrl = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = URL.parse(text);
    if (url === null || url.href !== text || hasLogin(url)) return false;
    return /^https?:$/.test(url.protocol) && fileNameIn(url) !== null;
  }, 'not an http or https URL without user and password');
const secureUrl = webUrl.refine((text) => text.startsWith('https:'), 'not an https URL');

function hasLogin(url: URL): boolean {
  return url.username + url.password !== '';
}

/** Returns null for invalid percent-encoding, such as `%zz`. */
function fileNameIn(url: URL): string | null {
  try {
    return decodeURIComponent(url.pathname.split('/').at(-1) ?? '');
  } catch {
    return null;
  }
}

/** Returns the file name that a list of checksums has for the URL of an entry. */
export function fileNameOf(url: string): string {
  return fileNameIn(new URL(url)) ?? '';
}

/**
 * Limit of a catalogue's minimum disk size, because `launch` creates such a disk without asking.
 */
const MAX_MIN_DISK_BYTES = 2 ** 40;

const facts = {
  format: z.enum([...IMAGE_FORMATS, 'auto']).default('auto'),
  /** The login user that cloud-init creates. */
  user: loginUser.nullable().default(null),
  /** The smallest disk that the image fits on; null: unknown. */
  minDiskBytes: z
    .number()
    .int()
    .positive()
    .max(MAX_MIN_DISK_BYTES, 'larger than 1 TiB')
    .nullable()
    .default(null),
  cloudInit: plainText.nullable().default(null),
} as const;

export const catalogueEntry = z
  .strictObject({
    name: imageName,
    aliases: imageName.array().max(32).default([]),
    title: plainText.default(''),
    ...facts,
    url: webUrl,
    /** Checksum of the file at `url`. */
    checksum: imageChecksum.nullable().default(null),
    /** The publisher's list of checksums, with the name of the file. */
    checksums: secureUrl.nullable().default(null),
    /** Detached signature of that list; its key is in a file of the node. */
    signature: secureUrl.nullable().default(null),
    keyring: z
      .string()
      .regex(/^\/[^\p{C}]{1,500}$/u)
      .nullable()
      .default(null),
  })
  .refine(({ checksum, checksums }) => (checksum === null) !== (checksums === null), {
    error: 'expected either checksum or checksums: unverified images are not installed',
  })
  .refine(({ signature, keyring }) => (signature === null) === (keyring === null), {
    error: 'expected both signature and keyring, or neither',
  });
export type CatalogueEntry = z.infer<typeof catalogueEntry>;

export const MAX_ENTRIES = 5000;
/**
 * The first output line of the unprivileged program that parses foreign documents. One entry per
 * line follows. The daemon validates each with `catalogueEntry`, with absolute URLs.
 */
export const catalogueVerdict = z.discriminatedUnion('verdict', [
  /** A simplestreams index with the paths of its products below the root. */
  z.strictObject({ verdict: z.literal('index'), paths: z.string().max(1024).array().max(64) }),
  z.strictObject({
    verdict: z.literal('entries'),
    /** Part of simplestreams: URLs are relative to the root, not to the document. */
    isStream: z.boolean(),
  }),
  z.strictObject({ verdict: z.literal('refused'), message: z.string().max(1000) }),
]);
export type CatalogueVerdict = z.infer<typeof catalogueVerdict>;

export const imageInfo = z.object({
  name: z.string(),
  catalogue: z.string(),
  aliases: z.string().array(),
  title: z.string(),
  ...facts,
  /** A URL or a path on the node, without secrets. */
  source: z.string(),
  /** The published checksum at the last lookup; null: never looked up. */
  checksum: z.string().nullable(),
  checksums: z.string().nullable(),
  /** How the checksum was verified. */
  verified: z.enum(['signature', 'https', 'catalogue', 'import']),
  isCached: z.boolean(),
  /** Another catalogue has the bare name, so this image needs CATALOGUE:NAME. */
  isShadowed: z.boolean(),
});
export type ImageInfo = z.infer<typeof imageInfo>;

export const catalogueInfo = z.object({
  name: z.string(),
  source: z.string(),
  images: z.number().int(),
  /** Invalid entries, which were skipped. */
  refused: z.number().int(),
  updatedAtMs: z.number().nullable(),
});
export type CatalogueInfo = z.infer<typeof catalogueInfo>;

export const resolveImage = z.strictObject({ name: imageReference });
export const resolvedImage = z.object({
  name: z.string(),
  catalogue: z.string(),
  source: z.string(),
  checksum: imageChecksum,
  ...facts,
  verified: imageInfo.shape.verified,
  /** The publisher did not answer. The checksum is an earlier one, and its image is cached. */
  isOffline: z.boolean(),
});
export type ResolvedImage = z.infer<typeof resolvedImage>;

export const importImage = z.strictObject({
  name: imageName,
  path: z.string().max(4096).startsWith('/', 'expected an absolute path'),
  checksum: imageChecksum.optional(),
  title: plainText.optional(),
  user: loginUser.optional(),
  minDiskBytes: facts.minDiskBytes.unwrap().unwrap().optional(),
  format: z.enum([...IMAGE_FORMATS, 'auto']).optional(),
});
export type ImportImage = z.infer<typeof importImage>;
/** An imported image or a catalogue. */
export const removeImage = z.strictObject({ name: imageName });
/** A path on the node, or an https URL. */
export const addCatalogue = z.strictObject({
  name: catalogueName,
  source: z.string().min(1).max(2048),
});
/** Empty: all catalogues. */
export const updateCatalogues = z.strictObject({ names: catalogueName.array().max(100) });
