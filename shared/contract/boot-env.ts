import { z } from 'zod';
import { fileName, osParameterName } from './primitives.ts';
import { ownValue } from '../json/own-value.ts';

/**
 * Boot environments with dr-provision's field names. A user's document may use several forms; the
 * stored form has only one for each fact.
 */

/** Characters of a template. Its rendered text has bounds of its own. */
const MAX_TEMPLATE_CHARACTERS = 512 * 1024;
const MAX_TEMPLATES = 64;
const MAX_INITRDS = 16;
const MAX_PARAMS = 256;
const MAX_REPOSITORIES = 256;
/** Bounds of `LeftOut`, which names the ignored parts of a document. */
const MAX_LEFT_OUT = 32;
const MAX_LEFT_OUT_LENGTH = 300;
/** Characters of a param's schema as JSON, with its default. */
const MAX_SCHEMA_CHARACTERS = 128 * 1024;

const text = (max: number): z.ZodString => z.string().max(max);
/** Accepts null, the YAML value of a key without a value. dr-provision reads it as empty. */
function orEmpty<Schema extends z.ZodType>(
  schema: Schema,
  empty: z.output<Schema>,
): z.ZodType<z.output<Schema>> {
  return schema.nullish().transform((value): z.output<Schema> => value ?? empty);
}
const prose = orEmpty(text(64 * 1024), '');
const flag = orEmpty(z.boolean(), false);

/** One path segment, because operators type it and files have this name. */
export const bootEnvName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, 'not a BootEnv name');
export const bootTemplateId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_. /-]{0,127}$/, 'not a template ID');

/** Path of a file in an archive or below a repository. */
const sourcePath = z
  .string()
  .max(1024)
  .refine(
    (path) =>
      !/[\\\p{Cc}?#]/u.test(path) &&
      path.split('/').every((part) => part !== '' && part !== '.' && part !== '..'),
    "not a path within an archive: remove the leading '/' and the parts '.' and '..'",
  );
const sourcePathOrNone = orEmpty(z.union([z.literal(''), sourcePath]), '');
const isoFile = orEmpty(z.union([z.literal(''), fileName]), '');
const isoSha256 = orEmpty(
  z
    .string()
    .regex(/^(?:[0-9a-fA-F]{64})?$/, 'not a SHA-256 in hex')
    .transform((digest) => digest.toLowerCase()),
  '',
);
export const MAX_ISO_URL_LENGTH = 2048;
const isoUrl = orEmpty(
  z
    .string()
    .max(MAX_ISO_URL_LENGTH)
    .regex(/^(?:(?:https?|ftp):\/\/[^\s]+)?$/i, 'not an http, https or ftp URL'),
  '',
);
const bootParamsText = orEmpty(text(16 * 1024), '');
const initrds = orEmpty(z.array(sourcePath).max(MAX_INITRDS), []);
const paramNames = orEmpty(z.array(osParameterName).max(MAX_PARAMS), []);

const meta = orEmpty(
  z.record(
    text(128),
    z.union([text(16 * 1024), z.number(), z.boolean(), z.null()]).transform((value) => {
      return value === null ? '' : String(value);
    }),
  ),
  {},
);

const templateInfo = z
  .strictObject({
    Name: text(128).min(1),
    /** A template of the path, below the file root. */
    Path: text(1024).min(1),
    ID: orEmpty(z.union([z.literal(''), bootTemplateId]), ''),
    Contents: orEmpty(text(MAX_TEMPLATE_CHARACTERS), ''),
    /** A template of another path below the file root with the same content. */
    Link: orEmpty(text(1024), ''),
    Meta: meta,
  })
  .refine(
    ({ ID, Contents, Link }) => [ID, Contents, Link].filter((part) => part !== '').length === 1,
    'a template needs exactly one of ID, Contents and Link',
  );
const templates = orEmpty(
  z
    .array(templateInfo)
    .max(MAX_TEMPLATES)
    .refine(
      (all) => new Set(all.map(({ Name }) => Name)).size === all.length,
      'two templates have the same Name',
    ),
  [],
);

/** A dr-provision architecture: its boot file and boot parameters. */
const archDocument = z.strictObject({
  IsoFile: isoFile,
  Sha256: isoSha256,
  IsoSha256: isoSha256,
  IsoUrl: isoUrl,
  Kernel: sourcePathOrNone,
  Initrds: initrds,
  BootParams: bootParamsText,
  Loader: orEmpty(text(1024), ''),
});
type ArchDocument = z.infer<typeof archDocument>;
const architectures = orEmpty(z.record(text(32), archDocument), {});
/** dr-provision's names for amd64. */
export const AMD64_NAMES: readonly string[] = ['amd64', 'x86_64'];
export const EFI_LOADER = 'amd64-uefi';

const osFields = {
  Family: orEmpty(text(128), ''),
  Codename: orEmpty(text(128), ''),
  Version: orEmpty(text(128), ''),
};
const loaders = orEmpty(z.record(text(64), sourcePath), {});

/** Fields that dr-provision or noded adds to output. Ignored in input. */
const statusFields = {
  LeftOut: z.unknown().optional(),
  Available: z.unknown().optional(),
  Bundle: z.unknown().optional(),
  Endpoint: z.unknown().optional(),
  Errors: z.unknown().optional(),
  Partial: z.unknown().optional(),
  ReadOnly: z.unknown().optional(),
  Validated: z.unknown().optional(),
};

/** A user's document, with the fields of older versions of dr-provision. */
export const bootEnvDocument = z.strictObject({
  ...statusFields,
  Name: bootEnvName,
  Description: prose,
  Documentation: prose,
  Meta: meta,
  OS: z.strictObject({
    ...osFields,
    Name: text(128).min(1),
    IsoFile: isoFile,
    IsoSha256: isoSha256,
    IsoUrl: isoUrl,
    SupportedArchitectures: architectures,
    /** Belongs to `Meta`; some published documents have it here. */
    type: z.unknown().optional(),
  }),
  Kernel: sourcePathOrNone,
  Initrds: initrds,
  BootParams: bootParamsText,
  Loaders: loaders,
  Templates: templates,
  RequiredParams: paramNames,
  OptionalParams: paramNames,
  OnlyUnknown: flag,
});
export type BootEnvDocument = z.infer<typeof bootEnvDocument>;

const bootArch = z.strictObject({
  IsoFile: isoFile,
  Sha256: isoSha256,
  IsoUrl: isoUrl,
  Kernel: sourcePathOrNone,
  Initrds: initrds,
  BootParams: bootParamsText,
});

/** The stored form: amd64 only, each fact in one place. Empty text means none. */
export const bootEnv = z.strictObject({
  Name: bootEnvName,
  Description: prose,
  Documentation: prose,
  Meta: meta,
  OS: z.strictObject({
    ...osFields,
    Name: text(128).min(1),
    SupportedArchitectures: z.strictObject({ amd64: bootArch }),
  }),
  Loaders: z.strictObject({ [EFI_LOADER]: sourcePath.optional() }),
  Templates: templates,
  RequiredParams: paramNames,
  OptionalParams: paramNames,
  /** Ignored parts of the document, for display. */
  LeftOut: z.array(text(MAX_LEFT_OUT_LENGTH)).max(MAX_LEFT_OUT).optional(),
});
export type BootEnv = z.infer<typeof bootEnv>;
type BootArch = z.infer<typeof bootArch>;

/** The stored form of a document, and a sentence for each ignored part. */
export interface KeptBootEnv {
  readonly bootEnv: BootEnv;
  readonly leftOut: readonly string[];
}

/** Converts a document. Fields of older versions of dr-provision fill gaps of amd64. Pure. */
export function foldBootEnv(document: BootEnvDocument): KeptBootEnv {
  const { OS, Loaders } = document;
  const name = AMD64_NAMES.find((each) => Object.hasOwn(OS.SupportedArchitectures, each));
  const own = name === undefined ? undefined : ownValue(OS.SupportedArchitectures, name);
  const loader = Loaders[EFI_LOADER];
  const leftOut = listLeftOut(document, name);
  const kept: BootEnv = {
    Name: document.Name,
    Description: document.Description,
    Documentation: document.Documentation,
    Meta: document.Meta,
    OS: {
      Name: OS.Name,
      Family: OS.Family,
      Codename: OS.Codename,
      Version: OS.Version,
      SupportedArchitectures: { amd64: foldArch(document, own) },
    },
    Loaders: loader === undefined ? {} : { [EFI_LOADER]: loader },
    Templates: document.Templates.filter((template) => !isOfUnknown(document, template)),
    RequiredParams: document.RequiredParams,
    OptionalParams: document.OptionalParams,
    ...(leftOut.length > 0 && { LeftOut: shorten(leftOut) }),
  };
  return { bootEnv: kept, leftOut };
}

/** Tells whether a template is for machines unknown to dr-provision: its Path names no machine. */
function isOfUnknown(
  { OnlyUnknown }: BootEnvDocument,
  { Path }: BootEnvDocument['Templates'][number],
): boolean {
  return OnlyUnknown && !Path.includes('.Machine');
}

function shorten(lines: readonly string[]): string[] {
  return lines.slice(0, MAX_LEFT_OUT).map((line) => line.slice(0, MAX_LEFT_OUT_LENGTH));
}

function foldArch(document: BootEnvDocument, own: ArchDocument | undefined): BootArch {
  const { OS } = document;
  // The file, its digest and its URL belong together: take all three from one place.
  const iso =
    own === undefined
      ? { IsoFile: OS.IsoFile, Sha256: OS.IsoSha256, IsoUrl: OS.IsoUrl }
      : { IsoFile: own.IsoFile, Sha256: own.Sha256 || own.IsoSha256, IsoUrl: own.IsoUrl };
  return {
    ...iso,
    Kernel: own?.Kernel || document.Kernel,
    Initrds: own && own.Initrds.length > 0 ? own.Initrds : document.Initrds,
    BootParams: own?.BootParams || document.BootParams,
  };
}

function listLeftOut(document: BootEnvDocument, amd64: string | undefined): readonly string[] {
  const { OS, Loaders, Templates } = document;
  const others = Object.keys(OS.SupportedArchitectures).filter((name) => name !== amd64);
  const loader = amd64 === undefined ? '' : ownValue(OS.SupportedArchitectures, amd64)?.Loader;
  return [
    ...(OS.type === undefined ? [] : ["the field 'type' of OS, which belongs in Meta"]),
    ...(others.length > 0 ? [`the architectures ${others.join(', ')}: instances are amd64`] : []),
    ...Object.keys(Loaders)
      .filter((name) => name !== EFI_LOADER)
      .map((name) => `the loader '${name}': TFTP is not supported`),
    ...(loader ? [`the loader '${loader}' of amd64: TFTP is not supported`] : []),
    ...(document.OnlyUnknown ? ['OnlyUnknown: every channel belongs to a known instance'] : []),
    ...Templates.filter((template) => isOfUnknown(document, template)).map(
      ({ Name }) => `the template '${Name}', which is for unknown machines`,
    ),
    ...Templates.filter(({ Meta }) => Object.keys(Meta).length > 0).map(
      ({ Name }) => `Meta of the template '${Name}'`,
    ),
  ];
}

const modelFields = {
  ...statusFields,
  Description: prose,
  Documentation: prose,
  Meta: meta,
};

/** A template that BootEnvs and other templates include by its ID. */
export const bootTemplate = z.strictObject({
  ...modelFields,
  ID: bootTemplateId,
  Contents: text(MAX_TEMPLATE_CHARACTERS),
});
export type BootTemplate = z.infer<typeof bootTemplate>;

/** The definition of a param. Its schema has a type and may have a default. */
export const bootParam = z.strictObject({
  ...modelFields,
  Name: osParameterName,
  /** A file that contains the value is treated as secret. */
  Secure: flag,
  // OpenAPI describes it as any value, because a recursive schema has no name there.
  Schema: z
    .unknown()
    .optional()
    .transform((schema, context) => {
      const { data, success } = z.json().safeParse(schema ?? {});
      if (!success) context.addIssue({ code: 'custom', message: 'not JSON' });
      return data ?? {};
    })
    .refine(
      (schema) => JSON.stringify(schema).length <= MAX_SCHEMA_CHARACTERS,
      `longer than ${MAX_SCHEMA_CHARACTERS} characters of JSON`,
    ),
});
export type BootParam = z.infer<typeof bootParam>;

const repositoryUrl = z
  .string()
  .max(1024)
  .regex(/^https?:\/\/[^\s/@?#\\][^\s@?#\\]*$/i, 'not an http or https URL without user and query');

/** An entry of the param package-repositories. Publishers choose the names of distributions. */
const packageRepository = z
  .strictObject({
    tag: text(256).min(1),
    os: z.array(text(128).min(1)).min(1).max(64),
    /** Empty means amd64 for an installSource, and any for another repository. */
    arch: orEmpty(text(32), ''),
    url: repositoryUrl,
    packageType: orEmpty(text(32), ''),
    repoType: orEmpty(z.enum(['', 'yum', 'zypp', 'apt']), ''),
    installSource: flag,
    securitySource: flag,
    distribution: orEmpty(text(128), ''),
    components: orEmpty(z.array(text(128).min(1)).max(64), []),
    bootloc: orEmpty(z.union([z.literal(''), repositoryUrl]), ''),
  })
  .refine(
    ({ installSource, os }) => !installSource || os.length === 1,
    'an installSource must have exactly one os',
  )
  .refine(
    ({ installSource, url, bootloc }) => !installSource || !/[$*]/.test(url + bootloc),
    'url and bootloc of an installSource must not contain wildcards of package managers',
  )
  .refine(
    ({ installSource, arch }) => !installSource || arch !== 'any',
    "the arch of an installSource must not be 'any'",
  )
  .transform((repository) => ({
    ...repository,
    arch: repository.arch || (repository.installSource ? 'amd64' : 'any'),
  }));
export type PackageRepository = z.infer<typeof packageRepository>;
export const packageRepositories = z.array(packageRepository).max(MAX_REPOSITORIES);

/** The param that changes BootEnvs of an instance or of a profile. */
export const CUSTOMIZE_PARAM = 'bootenv-customize';
/** Changes of one BootEnv. */
const bootEnvOverride = z.strictObject({
  Loaders: loaders,
  Templates: templates,
  OS: orEmpty(
    z.strictObject({
      ...osFields,
      Name: orEmpty(text(128), ''),
      SupportedArchitectures: architectures,
    }),
    { Name: '', Family: '', Codename: '', Version: '', SupportedArchitectures: {} },
  ),
});
export type BootEnvOverride = z.infer<typeof bootEnvOverride>;
export const bootEnvCustomize = z.record(text(128), bootEnvOverride);
