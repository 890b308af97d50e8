import { z } from 'zod';
import {
  hookPoint,
  imageFormat,
  instanceName,
  MAX_MIRRORS,
  mirrorName,
  uuid,
} from './primitives.ts';

/** virtio serial numbers have at most 20 bytes. The agent uses /dev/disk/by-id/virtio-<serial>. */
const diskSerial = z.string().regex(/^[a-z0-9-]{1,20}$/);

/**
 * Work of the appliance for one installation, in the order of the fields. Served at
 * /ganeti/<v>/install/plan.json. It contains no OS parameters, so that it can be shown and logged.
 * Their values are in /ganeti/<v>/os/parameters.json.
 */
export const installPlan = z.strictObject({
  version: z.literal(1),
  installId: uuid,
  instance: instanceName,
  /** Disks of the instance, in order; `disks[0]` receives the image. */
  disks: z
    .array(
      z.strictObject({
        serial: diskSerial,
        sizeBytes: z.number().int().positive(),
      }),
    )
    .max(16),
  /** The image, attached as a raw read-only disk. */
  image: z
    .strictObject({
      serial: diskSerial,
      /** Bytes of the image file: the attached disk is padded to 512. */
      fileSizeBytes: z.number().int().positive(),
      /**
       * Format that the operator gave, also for a disk that has no recognizable content. Absent:
       * detected from the content.
       */
      format: imageFormat.optional(),
      /** Grow the last partition and its file system to the disk. */
      grow: z.boolean(),
      /** The disk reads as zeros. Absent: discard its content first. */
      isDiskBlank: z.boolean().optional(),
    })
    .nullable(),
  /** Fetch os/definition.tar and run a script of it as root in the appliance. */
  scripts: z
    .strictObject({
      script: z.enum(['create', 'import', 'export', 'rename', 'verify']),
      /**
       * Path of the executable within definition.tar, e.g. `untrusted/create` or
       * `create_untrusted`.
       */
      path: z.string().max(255),
      /**
       * All variables except OSP_*, which the agent adds from os/parameters.json. Ganeti's names;
       * INSTANCE_BE_memory ends in lower case.
       */
      environment: z.record(z.string().regex(/^[A-Z][A-Za-z0-9_]*$/), z.string()),
      /**
       * Script that checks the OS parameters before any write, with the argument `parameters`.
       * Absent: none.
       */
      verify: z.string().max(255).optional(),
      /**
       * `import` and `export` run once for each dump of a disk, attached as a raw disk. For an
       * import it is read-only and `sizeBytes` is its size. For an export `sizeBytes` is its limit.
       */
      dumps: z
        .array(
          z.strictObject({
            disk: z.number().int().min(0).max(15),
            serial: diskSerial,
            sizeBytes: z.number().int().nonnegative(),
          }),
        )
        .max(16)
        .optional(),
    })
    .nullable(),
  /** Fetch os/package and overlay it on the instance's file systems. */
  personalization: z.strictObject({ format: z.literal('tar.gz') }).nullable(),
  /** Hooks, including the appliance's own. Absent: none runs. */
  hooks: z
    .strictObject({
      /** The stages whose hooks this appliance runs. */
      points: z.array(hookPoint),
      /** There is an install/hooks.json. */
      hasDocuments: z.boolean(),
    })
    .optional(),
  /**
   * Only check for errors that are visible without the instance's disks, which are not attached.
   * `disks` still has their sizes.
   */
  isLook: z.boolean().optional(),
  /** Package mirrors at /ganeti/<v>/mirror/<name>/. Absent: none is allowed. */
  mirrors: z.array(mirrorName).max(MAX_MIRRORS).optional(),
});
export type InstallPlan = z.infer<typeof installPlan>;
