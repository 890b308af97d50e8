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

/** The BootEnv of an instance that boots its disk. It needs no definition, and can have none. */
export const LOCAL_BOOT_ENV = 'local';
/** A BootEnv with such a name installs an operating system, and is `local` once it has. */
export function installsSystem(name: string | null): boolean {
  return name?.endsWith('-install') === true;
}

/** The template with the iPXE script of a BootEnv. It is built in. */
export const DEFAULT_IPXE_ID = 'default-ipxe.tmpl';

/**
 * Whether a BootEnv installs a system by a script that loads its kernel, and has no kernel for
 * amd64. Its installation would load nothing and wait for its time limit.
 */
export function lacksKernel({ Name, OS, Templates }: BootEnv): boolean {
  if (!installsSystem(Name) || OS.SupportedArchitectures.amd64.Kernel !== '') return false;
  return Templates.some(
    ({ ID, Contents }) => ID === DEFAULT_IPXE_ID || /\.Env\.Kernel\b/.test(Contents),
  );
}

/** BootEnvs that one request may have. */
const MAX_BOOT_ENVS = 250;
const MAX_TEMPLATES = 1000;
const MAX_PARAMS = 1000;
const MAX_PROFILES = 100;
/** Characters that the value of an OS parameter may have. */
const MAX_VALUE_LENGTH = 65_536;

/**
 * Content for BootEnvs, as a folder of dr-provision's has it; what there is of a name, is replaced.
 */
export const bootContent = {
  bootEnvs: z.array(bootEnv).max(MAX_BOOT_ENVS).default([]),
  templates: z.array(bootTemplate).max(MAX_TEMPLATES).default([]),
  params: z.array(bootParam).max(MAX_PARAMS).default([]),
  /** Public parameters; others of a profile that there is stay. */
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

/** What is taken away by its name. */
export const bootObject = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('bootEnv'), name: bootEnvName }),
  z.strictObject({ kind: z.literal('template'), name: bootTemplateId }),
  z.strictObject({ kind: z.literal('param'), name: osParameterName }),
]);
export type BootObject = z.infer<typeof bootObject>;

/** GET /v1/bootenvs. */
export const bootEnvInfo = z.object({
  name: z.string(),
  description: z.string(),
  osName: z.string(),
  installs: z.boolean(),
  isoFile: z.string(),
  isoUrl: z.string(),
  /** IDs of stored templates that it names. */
  templates: z.array(z.string()),
  requiredParams: z.array(z.string()),
  /** The instances that are set to it. */
  instances: z.array(z.string()),
  /** As dr-provision writes it. */
  document: z.record(z.string(), z.unknown()),
});
export type BootEnvInfo = z.infer<typeof bootEnvInfo>;

/** GET /v1/boot-templates. */
export const bootTemplateInfo = z.object({ id: z.string(), contents: z.string() });
/** GET /v1/boot-params. */
export const bootParamInfo = z.object({ name: z.string(), schema: z.unknown() });

/** GET /v1/boot-archives: those that the asked node has opened. */
export const bootArchiveInfo = z.object({
  isoFile: z.string(),
  sha256: z.string(),
  sizeBytes: z.number(),
  /** BootEnvs that name it, as they are in the store. */
  bootEnvs: z.array(z.string()),
});
export type BootArchiveInfo = z.infer<typeof bootArchiveInfo>;

/** GET /v1/instances/{name}/boot-plan: what the instance would be given. */
export const bootPlanInfo = z.object({
  bootEnv: z.string(),
  script: z.string(),
  /** What machines/UUID/boot/ shows. */
  source: z
    .union([
      z.object({ kind: z.literal('archive'), isoFile: z.string() }),
      z.object({ kind: z.literal('repository'), url: z.string() }),
    ])
    .nullable(),
  kernel: z.string().nullable(),
  initrds: z.array(z.string()),
  leftOut: z.array(z.string()),
  /** Members of dr-provision that templates read and that have a constant value here. */
  constants: z.array(z.string()).default([]),
  /** Private and secret values are `<redacted>` in them. */
  files: z.array(
    z.object({
      path: z.string(),
      /** Null where it needs a secret whose value nothing can stand for. */
      contents: z.string().nullable(),
      isSecretBearing: z.boolean(),
      lostSecrets: z.array(z.string()),
    }),
  ),
});
export type BootPlanInfo = z.infer<typeof bootPlanInfo>;
