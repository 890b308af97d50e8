import { z } from 'zod';
import { MIB } from '#shared/units/bytes.ts';
import { base64, osParameterName, sha256Hex } from './primitives.ts';

/** Bytes of one rendered file, and of all files of a boot environment. */
export const MAX_BOOT_FILE_BYTES = MIB;
export const MAX_BOOT_BYTES = 4 * MIB;
const MAX_BOOT_FILES = 256;
const MAX_BOOT_PATH_LENGTH = 512;
/** A DHCP option has 255 bytes. The metadata service's part of the URL takes about 100. */
const MAX_URL_PART_LENGTH = 128;
const MAX_BOOT_ENV_NAME_LENGTH = 255;

/**
 * Path below a file root. It has no empty segment, no `.` or `..`, and no characters with a meaning
 * in URLs or headers.
 */
export const bootPath = z
  .string()
  .max(MAX_BOOT_PATH_LENGTH)
  .regex(/^(?!\.{1,2}(\/|$))[\w.+~@:=,-]+(\/(?!\.{1,2}(\/|$))[\w.+~@:=,-]+)*$/, {
    error: 'not a path below the file root',
  });

/** Digest of the file's inputs without its secrets. Files with equal digests replace each other. */
const basis = sha256Hex.optional();
/**
 * `lost` names the secret OS parameters that noded needs and no longer has. A receiver keeps its
 * file of the same basis.
 */
const viewBootFile = z.union([
  z.strictObject({
    content: base64.max(4 * Math.ceil(MAX_BOOT_FILE_BYTES / 3)),
    /** Prevents caching of answers, and masks the content for operators. */
    isSecretBearing: z.boolean(),
    basis,
  }),
  z.strictObject({ lost: z.array(osParameterName).min(1).max(1000), basis }),
]);

/** Boot files of one instance, served below `/ganeti/<v>/boot/`. */
export const viewBoot = z.strictObject({
  /** Name of the boot environment. */
  bootEnv: z.string().min(1).max(MAX_BOOT_ENV_NAME_LENGTH),
  /** Key of the iPXE script in `files`. */
  script: bootPath.max(MAX_URL_PART_LENGTH),
  /** EFI program for firmware with HTTP boot, in the tree below `machines/<uuid>/boot/`. */
  loader: bootPath.max(MAX_URL_PART_LENGTH).nullable(),
  files: z
    .record(bootPath, viewBootFile)
    .refine((files) => Object.keys(files).length <= MAX_BOOT_FILES, {
      error: `more than ${MAX_BOOT_FILES} files`,
    })
    .refine((files) => sizeOf(Object.values(files)) <= MAX_BOOT_BYTES, {
      error: `more than ${MAX_BOOT_BYTES} bytes in total`,
    }),
  /** Whether noded's content socket has a tree for `machines/<uuid>/boot/`. */
  hasTree: z.boolean(),
});

export type ViewBoot = z.infer<typeof viewBoot>;
export type ViewBootFile = z.infer<typeof viewBootFile>;

function sizeOf(files: readonly ViewBootFile[]): number {
  return files.reduce(
    (bytes, file) => bytes + ('content' in file ? Buffer.byteLength(file.content, 'base64') : 0),
    0,
  );
}
