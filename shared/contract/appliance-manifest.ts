import { z } from 'zod';
import { fileName, sha256Hex } from './primitives.ts';

/** Of an appliance that was imported: a folder of this name. */
export const applianceName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'not an appliance name');
/** The one that `gnt-appliance build` makes. */
export const BUILT_APPLIANCE = 'built';

/** It is shown to people, and a kernel's arguments are one line. */
const printableLine = z.string().regex(/^[^\p{Cc}]*$/u, 'contains control characters');

const manifestFile = z.strictObject({
  name: fileName,
  sizeBytes: z.number().int().positive(),
  sha256: sha256Hex,
});

/**
 * `manifest.json` beside the appliance's files. Every install boots the same bytes: they are
 * compared with this before each boot.
 */
export const applianceManifest = z.strictObject({
  version: z.literal(1),
  /**
   * Hash of everything that the image was made from but its hooks: builder, agent, package list.
   * The key of the build cache.
   */
  inputsHash: sha256Hex,
  architecture: printableLine,
  kernelVersion: printableLine,
  /**
   * Date of the newest package, RFC 3339: nothing in the image depends on the time of the build.
   */
  sourceDate: printableLine,
  /** `-append` of the kernel. */
  kernelArguments: printableLine,
  /** Put behind them in an emulated machine. Absent in manifests that are older. */
  emulatedKernelArguments: printableLine.default(''),
  memoryMiB: z.number().int().positive(),
  kernel: manifestFile,
  initrd: manifestFile,
  /** Read-only root file system, first virtio disk (serial `root`). */
  root: manifestFile,
  /** `name=version` of every Debian package inside. */
  packages: z.array(printableLine),
  /**
   * The appliance's own hooks, run before all others, by name. Absent in manifests that are older
   * than they.
   */
  hooks: z.array(z.strictObject({ name: fileName, sha256: sha256Hex })).default([]),
});
export type ApplianceManifest = z.infer<typeof applianceManifest>;

/**
 * What `gnt-appliance build --progress-json` prints, one object a line, for noded to show in a job.
 * Exit status 0 after `done`.
 */
export const buildProgress = z.discriminatedUnion('type', [
  z.object({ type: z.literal('step'), text: z.string() }),
  z.object({ type: z.literal('done'), directory: z.string() }),
  z.object({
    type: z.literal('error'),
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
  }),
]);
export type BuildProgress = z.infer<typeof buildProgress>;
