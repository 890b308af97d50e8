import { z } from 'zod';
import { fileName, sha256Hex } from './primitives.ts';

/** Name and folder of an imported appliance. */
export const applianceName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'not an appliance name');
/** The appliance that `gnt-appliance build` makes. */
export const BUILT_APPLIANCE = 'built';

/** Shown in a terminal; kernel arguments are one line. */
const printableLine = z.string().regex(/^[^\p{Cc}]*$/u, 'contains control characters');

const manifestFile = z.strictObject({
  name: fileName,
  sizeBytes: z.number().int().positive(),
  sha256: sha256Hex,
});

/**
 * `manifest.json` beside the appliance's files. noded compares the files with it before each boot,
 * so that every installation boots the same bytes.
 */
export const applianceManifest = z.strictObject({
  version: z.literal(1),
  /**
   * Hash of all inputs of the image except its hooks: builder, agent and package list. Key of the
   * build cache.
   */
  inputsHash: sha256Hex,
  architecture: printableLine,
  kernelVersion: printableLine,
  /** Date of the newest package, RFC 3339. The image does not depend on the time of the build. */
  sourceDate: printableLine,
  /** `-append` of the kernel. */
  kernelArguments: printableLine,
  /** Appended under emulation (TCG). Absent in older manifests. */
  emulatedKernelArguments: printableLine.default(''),
  memoryMiB: z.number().int().positive(),
  kernel: manifestFile,
  initrd: manifestFile,
  /** Read-only root file system, first virtio disk (serial `root`). */
  root: manifestFile,
  /** `name=version` of every Debian package inside. */
  packages: z.array(printableLine),
  /** The appliance's own hooks, which run before all others, by name. Absent in older manifests. */
  hooks: z.array(z.strictObject({ name: fileName, sha256: sha256Hex })).default([]),
});
export type ApplianceManifest = z.infer<typeof applianceManifest>;

/**
 * Output of `gnt-appliance build --progress-json`, one object per line. noded shows it in a job.
 * The exit status is 0 after `done`.
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
