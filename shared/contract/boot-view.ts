import { z } from 'zod';
import { MIB } from '#shared/units/bytes.ts';
import { base64, osParameterName, sha256Hex } from './primitives.ts';

/** One rendered file of a boot environment, and all files of one, in bytes. */
export const MAX_BOOT_FILE_BYTES = MIB;
export const MAX_BOOT_BYTES = 4 * MIB;
const MAX_BOOT_FILES = 256;
const MAX_BOOT_PATH_LENGTH = 512;
/** A DHCP option has 255 bytes, of which the service's part of the URL takes about 100. */
const MAX_URL_PART_LENGTH = 128;
const MAX_BOOT_ENV_NAME_LENGTH = 255;

/**
 * Path below a file root: no empty segment, no `.` or `..`, nothing that a URL or a header would
 * take for something else.
 */
export const bootPath = z
  .string()
  .max(MAX_BOOT_PATH_LENGTH)
  .regex(/^(?!\.{1,2}(\/|$))[\w.+~@:=,-]+(\/(?!\.{1,2}(\/|$))[\w.+~@:=,-]+)*$/, {
    error: 'not a path below the file root',
  });

/**
 * Digest of what is in a file besides its secrets; of two that are equal one stands for the other.
 */
const basis = sha256Hex.optional();
/**
 * `lost` names the secret OS parameters that noded would need and does not have any more. Whoever
 * has a file of the same basis goes on with that.
 */
const viewBootFile = z.union([
  z.strictObject({
    content: base64.max(4 * Math.ceil(MAX_BOOT_FILE_BYTES / 3)),
    /** Answers are not to be kept, and operators see it masked. */
    isSecretBearing: z.boolean(),
    basis,
  }),
  z.strictObject({ lost: z.array(osParameterName).min(1).max(1000), basis }),
]);

/** What an instance boots from its channel: rendered for it, served below `/ganeti/<v>/boot/`. */
export const viewBoot = z.strictObject({
  /** Name of the boot environment. */
  bootEnv: z.string().min(1).max(MAX_BOOT_ENV_NAME_LENGTH),
  /** Which of `files` a machine's own iPXE is sent to. */
  script: bootPath.max(MAX_URL_PART_LENGTH),
  /** EFI program for firmware that boots by HTTP, in the tree below `machines/<uuid>/boot/`. */
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
