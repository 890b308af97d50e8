import { z } from 'zod';
import { entityText } from './entities.ts';
import { compileGoRegex } from './go-regex.ts';

/**
 * One step of a stage in yip's schema (mudler/yip, pkg/schema), as far as installations support it.
 * Scalars are the document's texts and are interpreted here, so that `0777` is octal and a version
 * `1.10` keeps its zero.
 */
const MAX_MODE = 0o7777;
const text = z.string();
const path = z.string().regex(/^\/[^\0]*[^/\0]\/?$/, 'not an absolute path');
const word = z.string().regex(/^[^\s\0]+$/, 'expected one word');
const integer = z
  .string()
  .regex(/^(0o?[0-7]{1,9}|0x[0-9A-Fa-f]{1,8}|[1-9][0-9]{0,9}|0)$/, 'not a whole number')
  .transform((digits) =>
    /^0o?[0-7]/.test(digits) ? Number(`0o${digits.replace(/^0o?/, '')}`) : Number(digits),
  );
const mode = integer.refine((value) => value <= MAX_MODE, 'not a file mode');
const flag = z
  .string()
  .regex(/^(true|false|yes|no|on|off)$/i, 'expected true or false')
  .transform((value) => /^(true|yes|on)$/i.test(value));
const regex = z.string().refine(isRegex, 'not a regular expression of Go');
const accountField = z.string().regex(/^[^:\n\0]*$/, 'contains a colon or a line break');
const accountName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?$/, 'not an account name');
const publicKey = z
  .string()
  .regex(
    /^(?!(github|gitlab|https?):)[^\n]+$/,
    'expected the text of a public key: an installation cannot fetch keys',
  );

const ownership = {
  owner: integer.optional(),
  group: integer.optional(),
  owner_string: text.optional(),
  /** The name in yip's own parser. */
  ownerstring: text.optional(),
};

const diskLabel = z.string().regex(/^[A-Za-z0-9_.:+-]{1,36}$/, 'not a label');
/** `-`, `none` and `noformat`: a partition without a file system. */
const fileSystems = [
  ...['ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'vfat', 'swap'],
  ...['-', 'none', 'noformat'],
];

const encodings = ['b64', 'base64', 'gz', 'gzip', 'gz+b64', 'gz+base64', 'gzip+b64', 'gzip+base64'];

const user = z.strictObject({
  name: text.optional(),
  passwd: accountField.optional(),
  ssh_authorized_keys: z.array(publicKey).default([]),
  gecos: accountField.optional(),
  homedir: path.and(accountField).optional(),
  no_create_home: flag.default(false),
  primary_group: accountName.optional(),
  groups: z.array(accountName).default([]),
  no_user_group: flag.default(false),
  system: flag.default(false),
  no_log_init: flag.default(false),
  shell: accountField.optional(),
  lock_passwd: flag.default(false),
  uid: integer.optional(),
});
export type UserFields = z.infer<typeof user>;

export const hostName = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/, 'not a host name');
const packageName = z.string().regex(/^[A-Za-z0-9][\w+.:=~/-]{0,200}$/, 'not a package name');
const entities = z.array(z.strictObject({ path: path.optional(), entity: entityText })).default([]);

/** yip's fields that installations refuse, with the reason. */
export const refusedFields: Readonly<Record<string, string>> = {
  git: 'the appliance has no git and reaches only its host; use downloads, or a personalization package',
  unpack_images:
    'the appliance cannot reach a registry; use --os-image, or a personalization package',
  datasource: 'the guest reads its user data when it boots',
  package_pins: 'pins are files of the package manager; write them with files',
};

export const stepFields = z.strictObject({
  name: text.max(200).default(''),
  /** An extension of yip: a failure of this step is logged and does not end the installation. */
  optional: flag.default(false),
  after: z.array(z.strictObject({ name: text })).default([]),
  if: text.optional(),
  only_os: regex.optional(),
  only_os_version: regex.optional(),
  only_arch: regex.optional(),
  only_service_manager: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['systemd', 'openrc'], 'expected systemd or openrc'))
    .optional(),
  node: regex.optional(),
  if_files: z
    .strictObject({
      any: z.array(path).default([]),
      all: z.array(path).default([]),
      none: z.array(path).default([]),
    })
    .optional(),
  dns: z
    .strictObject({
      nameservers: z.array(word).default([]),
      search: z.array(word).default([]),
      options: z.array(word).default([]),
      path: path.default('/etc/resolv.conf'),
    })
    .optional(),
  downloads: z
    .array(
      z.strictObject({
        path,
        url: z.string().regex(/^https?:\/\/[^\s\0]+$/, 'not an http or https URL'),
        permissions: mode.default(0o644),
        /** Seconds; 0 is no limit. */
        timeout: integer.default(0),
        ...ownership,
      }),
    )
    .default([]),
  directories: z
    .array(z.strictObject({ path, permissions: mode.default(0o755), ...ownership }))
    .default([]),
  files: z
    .array(
      z.strictObject({
        path,
        content: text.default(''),
        encoding: z.enum(encodings).optional(),
        permissions: mode.default(0o644),
        ...ownership,
      }),
    )
    .default([]),
  commands: z.array(text).default([]),
  ensure_entities: entities,
  delete_entities: entities,
  /** Templates are checked when they are rendered. */
  hostname: z
    .union([
      hostName,
      z.string().refine((name) => /^[^\n]*$/.test(name) && name.includes('{{'), 'not a host name'),
    ])
    .optional(),
  sysctl: z.record(z.string().regex(/^[^\s=\0]+$/), z.string().regex(/^[^\n\0]*$/)).default({}),
  users: z.record(accountName, user).default({}),
  authorized_keys: z.record(accountName, z.array(publicKey)).default({}),
  modules: z
    .array(z.string().regex(/^[\w-]{1,64}( [^\n\0]{1,200})?$/, 'not a module with parameters'))
    .default([]),
  timesyncd: z.record(z.string().regex(/^\w{1,64}$/), z.string().regex(/^[^\n\0]*$/)).default({}),
  systemd_firstboot: z
    .record(z.string().regex(/^[A-Za-z][A-Za-z-]{0,63}$/), z.string().regex(/^[^\n\0]*$/))
    .default({}),
  systemctl: z
    .strictObject({
      start: z.array(word).default([]),
      enable: z.array(word).default([]),
      disable: z.array(word).default([]),
      mask: z.array(word).default([]),
      overrides: z
        .array(
          z.strictObject({
            service: z.string().regex(/^[^/\s\0]+$/),
            name: z
              .string()
              .regex(/^[^/\s\0]+$/)
              .default('override-yip.conf'),
            content: text,
          }),
        )
        .default([]),
    })
    .optional(),
  environment: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().regex(/^[^\n\0]*$/))
    .default({}),
  environment_file: path.default('/etc/environment'),
  layout: z
    .strictObject({
      device: z
        .strictObject({
          path: path
            .or(z.string().regex(/^script:\/\/\s*[^\s\0][^\n\0]*$/, 'not an absolute path'))
            .optional(),
          label: diskLabel.optional(),
          init_disk: flag.default(false),
          /** Name of a GPT in yip's schema, without effect. */
          disk_name: text.optional(),
        })
        .refine(({ path: at, label }) => (at === undefined) !== (label === undefined), {
          error: 'path or label is required',
        }),
      /** MiB; 0 is all free space. */
      expand_partition: z.strictObject({ size: integer.default(0) }).optional(),
      add_partitions: z
        .array(
          z.strictObject({
            fsLabel: diskLabel.optional(),
            pLabel: diskLabel.optional(),
            size: integer.default(0),
            filesystem: z.enum(fileSystems).default('ext2'),
            bootable: flag.default(false),
          }),
        )
        .default([]),
    })
    .optional(),
  packages: z
    .strictObject({
      install: z.array(packageName).default([]),
      remove: z.array(packageName).default([]),
      refresh: flag.default(false),
      upgrade: flag.default(false),
    })
    .optional(),
});
export type StepFields = z.infer<typeof stepFields>;
export type Ownership = Pick<StepFields['files'][number], keyof typeof ownership>;

/**
 * Fields that change the instance's system, and have no use in the appliance. All others but layout
 * are allowed in each stage.
 */
export const instanceFields = [
  'hostname',
  'sysctl',
  'users',
  'authorized_keys',
  'systemctl',
  'ensure_entities',
  'delete_entities',
  'modules',
  'timesyncd',
  'systemd_firstboot',
  'packages',
] as const;

function isRegex(source: string): boolean {
  try {
    compileGoRegex(source);
    return true;
  } catch {
    return false;
  }
}
