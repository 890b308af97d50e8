import { z } from 'zod';
import {
  bootEnv,
  type BootEnv,
  bootEnvName,
  bootParam,
  bootTemplate,
  bootTemplateId,
} from './boot-env.ts';
import { osParameterName } from './primitives.ts';
import { profileName } from './profile.ts';

/** The BootEnv of an instance that boots its disk. It is built in and cannot be defined. */
export const LOCAL_BOOT_ENV = 'local';
/**
 * Tells whether a BootEnv installs an operating system. Such a BootEnv becomes `local` afterwards.
 */
export function installsSystem(name: string | null): boolean {
  return name?.endsWith('-install') === true;
}

/** ID of the built-in template with the iPXE script of a BootEnv. */
export const DEFAULT_IPXE_ID = 'default-ipxe.tmpl';

/**
 * Tells whether a BootEnv installs a system with a script that loads a kernel, but names no amd64
 * kernel. Its installation would wait until the time limit.
 */
export function lacksKernel({ Name, OS, Templates }: BootEnv): boolean {
  if (!installsSystem(Name) || OS.SupportedArchitectures.amd64.Kernel !== '') return false;
  return Templates.some(
    ({ ID, Contents }) => ID === DEFAULT_IPXE_ID || /\.Env\.Kernel\b/.test(Contents),
  );
}

/** BootEnvs in one request. */
const MAX_BOOT_ENVS = 250;
const MAX_TEMPLATES = 1000;
const MAX_PARAMS = 1000;
const MAX_PROFILES = 100;
/** Characters of an OS parameter's value. */
const MAX_VALUE_LENGTH = 65_536;

/**
 * Content for BootEnvs, in the layout of a dr-provision folder. It replaces objects of the same
 * name.
 */
export const bootContent = {
  bootEnvs: z.array(bootEnv).max(MAX_BOOT_ENVS).default([]),
  templates: z.array(bootTemplate).max(MAX_TEMPLATES).default([]),
  params: z.array(bootParam).max(MAX_PARAMS).default([]),
  /** Public parameters. Other parameters of an existing profile stay. */
  profiles: z
    .array(
      z.strictObject({
        name: profileName,
        osParameters: z.record(osParameterName, z.string().max(MAX_VALUE_LENGTH)),
      }),
    )
    .max(MAX_PROFILES)
    .default([]),
} as const;

/** An object to remove. */
export const bootObject = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('bootEnv'), name: bootEnvName }),
  z.strictObject({ kind: z.literal('template'), name: bootTemplateId }),
  z.strictObject({ kind: z.literal('param'), name: osParameterName }),
]);
export type BootObject = z.infer<typeof bootObject>;

export const bootEnvInfo = z.object({
  name: z.string(),
  description: z.string(),
  osName: z.string(),
  installs: z.boolean(),
  isoFile: z.string(),
  isoUrl: z.string(),
  /** IDs of the stored templates that it names. */
  templates: z.array(z.string()),
  requiredParams: z.array(z.string()),
  /** Instances with this BootEnv. */
  instances: z.array(z.string()),
  /** In dr-provision's format. */
  document: z.record(z.string(), z.unknown()),
});
export type BootEnvInfo = z.infer<typeof bootEnvInfo>;

export const bootTemplateInfo = z.object({ id: z.string(), contents: z.string() });
export const bootParamInfo = z.object({ name: z.string(), schema: z.unknown() });

/** GET /v1/boot-archives: archives that the requested node has extracted. */
export const bootArchiveInfo = z.object({
  isoFile: z.string(),
  sha256: z.string(),
  sizeBytes: z.number(),
  /** Stored BootEnvs that name the archive. */
  bootEnvs: z.array(z.string()),
});
export type BootArchiveInfo = z.infer<typeof bootArchiveInfo>;

/** GET /v1/instances/{name}/boot-plan: rendered boot files of an instance. */
export const bootPlanInfo = z.object({
  bootEnv: z.string(),
  script: z.string(),
  /** Content of machines/UUID/boot/. */
  source: z
    .union([
      z.object({ kind: z.literal('archive'), isoFile: z.string() }),
      z.object({ kind: z.literal('repository'), url: z.string() }),
    ])
    .nullable(),
  kernel: z.string().nullable(),
  initrds: z.array(z.string()),
  leftOut: z.array(z.string()),
  /** Members of dr-provision that templates read and that are constants here. */
  constants: z.array(z.string()).default([]),
  /** Private and secret values are `<redacted>`. */
  files: z.array(
    z.object({
      path: z.string(),
      /** Null if a secret is missing that has no placeholder. */
      contents: z.string().nullable(),
      isSecretBearing: z.boolean(),
      lostSecrets: z.array(z.string()),
    }),
  ),
});
export type BootPlanInfo = z.infer<typeof bootPlanInfo>;
