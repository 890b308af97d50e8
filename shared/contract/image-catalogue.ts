import { z } from 'zod';
import { loginUser } from './host-keys.ts';
import { IMAGE_FORMATS } from './image-formats.ts';
import { imageChecksum } from './opcode.ts';

/**
 * Images by name: what a catalogue says of them, and what the node's API tells. A name is a few
 * words with slashes between them, each beginning with a letter or digit, so that it is no path, no
 * URL and no option.
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
/** As an operator asks for one: `debian/12`, or `CATALOGUE:debian/12`. */
export const imageReference = z
  .string()
  .max(2 * MAX_NAME_LENGTH)
  .regex(
    new RegExp(`^(${CATALOGUE}:)?${NAME}$`),
    'not an image name: list the images with gnt-image list',
  );

/** The catalogue that comes with the programs, and what was imported. */
export const BUILT_IN = 'built-in';
export const IMPORTED = 'imported';

/** Shown to people: nothing that a terminal obeys, or that turns text around. */
const plainText = z.string().regex(/^[^\p{C}\p{Zl}\p{Zp}]{0,200}$/u, 'not plain text');
/** In one way to write it, and without a login, which is nothing for a catalogue. */
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

/** Null for what is no percent-encoding: `%zz`. */
function fileNameIn(url: URL): string | null {
  try {
    return decodeURIComponent(url.pathname.split('/').at(-1) ?? '');
  } catch {
    return null;
  }
}

/** The name by which a list of checksums knows the file of a URL that an entry has. */
export function fileNameOf(url: string): string {
  return fileNameIn(new URL(url)) ?? '';
}

/** The largest disk that a catalogue's image may need: `launch` makes it without being asked. */
const MAX_MIN_DISK_BYTES = 2 ** 40;

const facts = {
  format: z.enum([...IMAGE_FORMATS, 'auto']).default('auto'),
  /** Whom cloud-init lets in. */
  user: loginUser.nullable().default(null),
  /** The smallest disk that the image fits on; null: nobody said. */
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
    /** The checksum of the file at `url`. */
    checksum: imageChecksum.nullable().default(null),
    /** Where the publisher lists checksums; the file is found there by its name. */
    checksums: secureUrl.nullable().default(null),
    /** Detached signature of that list, of a key in a file of the node. */
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
 * The first line of what the program without power makes of a foreign document. Entries follow, a
 * line each: the daemon judges each by `catalogueEntry`, with its URLs made whole.
 */
export const catalogueVerdict = z.discriminatedUnion('verdict', [
  /** It is an index of simplestreams, whose products are at these paths below its root. */
  z.strictObject({ verdict: z.literal('index'), paths: z.string().max(1024).array().max(64) }),
  z.strictObject({
    verdict: z.literal('entries'),
    /** It is a part of simplestreams: URLs are below the root, not beside the document. */
    isStream: z.boolean(),
  }),
  z.strictObject({ verdict: z.literal('refused'), message: z.string().max(1000) }),
]);
export type CatalogueVerdict = z.infer<typeof catalogueVerdict>;

/** GET /v1/images. */
export const imageInfo = z.object({
  name: z.string(),
  catalogue: z.string(),
  aliases: z.string().array(),
  title: z.string(),
  ...facts,
  /** Without a secret in it: a URL, or a path on the node. */
  source: z.string(),
  /** As it was published when it was looked up last; null: never yet. */
  checksum: z.string().nullable(),
  checksums: z.string().nullable(),
  /** How the checksum is known. */
  verified: z.enum(['signature', 'https', 'catalogue', 'import']),
  isCached: z.boolean(),
  /** Another catalogue has the bare name: this one is CATALOGUE:NAME. */
  isShadowed: z.boolean(),
});
export type ImageInfo = z.infer<typeof imageInfo>;

/** GET /v1/catalogues. */
export const catalogueInfo = z.object({
  name: z.string(),
  source: z.string(),
  images: z.number().int(),
  /** Entries that were passed over, since they are not what an entry is. */
  refused: z.number().int(),
  updatedAtMs: z.number().nullable(),
});
export type CatalogueInfo = z.infer<typeof catalogueInfo>;

/** POST /v1/images/resolve. */
export const resolveImage = z.strictObject({ name: imageReference });
export const resolvedImage = z.object({
  name: z.string(),
  catalogue: z.string(),
  source: z.string(),
  checksum: imageChecksum,
  ...facts,
  verified: imageInfo.shape.verified,
  /** The publisher could not be asked: the checksum is an earlier one, whose image is cached. */
  isOffline: z.boolean(),
});
export type ResolvedImage = z.infer<typeof resolvedImage>;

/** POST /v1/images/import. */
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
/** POST /v1/images/remove: an imported image, or a catalogue. */
export const removeImage = z.strictObject({ name: imageName });
/** POST /v1/catalogues: a path on the node, or an https URL. */
export const addCatalogue = z.strictObject({
  name: catalogueName,
  source: z.string().min(1).max(2048),
});
/** POST /v1/catalogues/update; all without names. */
export const updateCatalogues = z.strictObject({ names: catalogueName.array().max(100) });
