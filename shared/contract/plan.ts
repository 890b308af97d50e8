import { z } from 'zod';
import {
  hookPoint,
  imageFormat,
  instanceName,
  MAX_MIRRORS,
  mirrorName,
  uuid,
} from './primitives.ts';

/**
 * virtio serial numbers have at most 20 bytes; the agent makes /dev/disk/by-id/virtio-<serial> of
 * them.
 */
const diskSerial = z.string().regex(/^[a-z0-9-]{1,20}$/);

/**
 * What the appliance must do for one install, in the order of the fields. Served at
 * /ganeti/<v>/install/plan.json. It holds no OS parameter: values come from
 * /ganeti/<v>/os/parameters.json, so that a plan can be shown and logged.
 */
export const installPlan = z.strictObject({
  version: z.literal(1),
  installId: uuid,
  instance: instanceName,
  /** Disks of the instance, in order; `disks[0]` takes the image. */
  disks: z
    .array(
      z.strictObject({
        serial: diskSerial,
        sizeBytes: z.number().int().positive(),
      }),
    )
    .max(16),
  /** The image is attached as a raw read-only disk; its format is found by content. */
  image: z
    .strictObject({
      serial: diskSerial,
      /** Bytes of the image file: the attached disk is padded to 512. */
      fileSizeBytes: z.number().int().positive(),
      /**
       * What the operator says that it is, and that it is a disk although nothing in it shows that.
       * Absent: found by content.
       */
      format: imageFormat.optional(),
      /** Grow the last partition and its file system to the disk. */
      grow: z.boolean(),
      /** The disk reads as zeros. Absent: what is on it has to be thrown away first. */
      isDiskBlank: z.boolean().optional(),
    })
    .nullable(),
  /**
   * Fetch os/definition.tar, run `untrusted/<script>` (or the definition's own spelling, see
   * `path`) as root in the appliance.
   */
  scripts: z
    .strictObject({
      script: z.enum(['create', 'import', 'export', 'rename', 'verify']),
      /**
       * Path of the executable within definition.tar, e.g. `untrusted/create` or
       * `create_untrusted`.
       */
      path: z.string().max(255),
      /**
       * Everything but OSP_*, which the agent adds from os/parameters.json. Ganeti's names;
       * INSTANCE_BE_memory ends in lower case.
       */
      environment: z.record(z.string().regex(/^[A-Z][A-Za-z0-9_]*$/), z.string()),
      /**
       * Run with the argument `parameters` before anything is written; it judges the OS parameters.
       * Absent: there is none.
       */
      verify: z.string().max(255).optional(),
      /**
       * `import` and `export` are run once for each: the dump of this disk, attached as a raw disk.
       * Of an import `sizeBytes` is the dump's size, and it is read-only; of an export it is what a
       * dump may have.
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
  /** Hooks, the appliance's own among them. Absent: none is run. */
  hooks: z
    .strictObject({
      /** The stages whose hooks are this machine's to run. */
      points: z.array(hookPoint),
      /** There is an install/hooks.json. */
      hasDocuments: z.boolean(),
    })
    .optional(),
  /**
   * Nothing is installed: what can be found bad without the instance's disks, which this machine
   * does not have, is looked for. Their sizes are in `disks` all the same.
   */
  isLook: z.boolean().optional(),
  /** Package mirrors at /ganeti/<v>/mirror/<name>/. Absent: none is allowed. */
  mirrors: z.array(mirrorName).max(MAX_MIRRORS).optional(),
});
export type InstallPlan = z.infer<typeof installPlan>;
