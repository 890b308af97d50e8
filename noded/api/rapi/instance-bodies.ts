import { imageFormat } from '#shared/contract/primitives.ts';
import { type PlainPlace, plainSettings, type ValueType } from '#shared/contract/parameter-keys.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { z } from 'zod';

/** Bodies of requests, by Ganeti's names. The opcodes check the values. */
const ignored = z.unknown().optional();
/** Parameters of every Ganeti opcode, which have no effect here. */
const common = {
  debug_level: ignored,
  priority: ignored,
  reason: ignored,
  comment: ignored,
} as const;
/** Parameters that Ganeti's clients send by default and that have no effect here. */
const withoutMeaning = {
  ...common,
  ip_check: ignored,
  name_check: ignored,
  conflicts_check: ignored,
  wait_for_sync: ignored,
  ignore_ipolicy: ignored,
  opportunistic_locking: ignored,
  file_driver: ignored,
  identify_defaults: ignored,
} as const;

const text = z.string().max(65_536);
const osParameters = z.record(z.string(), z.union([text, z.number().transform(String)]));
const osParameterChanges = z.record(
  z.string(),
  z.union([text, z.number().transform(String), z.null()]),
);
const parameters = z.record(z.string(), z.unknown());
const seconds = z.number().nonnegative();
const count = z.number().int();

const beparams = z.strictObject({
  memory: count.optional(),
  maxmem: count.optional(),
  vcpus: count.optional(),
  ...{ minmem: ignored, auto_balance: ignored },
  ...{ always_failover: ignored, spindle_use: ignored },
});
const nic = z.strictObject({
  mac: z.string().optional(),
  mode: z.string().optional(),
  link: z.string().optional(),
  /** Ganeti's older name for the link of a bridged NIC. */
  bridge: z.string().optional(),
  name: z.string().nullish(),
  ip: z.string().nullish(),
  gateway: z.string().optional(),
  dns: z.string().optional(),
  search: z.string().optional(),
  routes: z.string().optional(),
  mtu: z.union([z.number(), z.string()]).optional(),
  /** The name of a network, as in Ganeti. */
  network: z.string().nullish(),
});
const disk = z.strictObject({
  /** MiB. */
  size: z.number().int().positive(),
  name: z.string().nullish(),
  mode: z.literal('rw').optional(),
});

/** Parameters beyond Ganeti's, named as the options of our commands. */
const beyondGaneti = {
  os_image: text.optional(),
  os_image_checksum: text.optional(),
  os_image_grow: z.boolean().optional(),
  os_image_format: imageFormat.or(z.literal('auto')).optional(),
  personalization_package: text.optional(),
  personalization_checksum: text.optional(),
  personalization_user: text.optional(),
  personalization_password: text.optional(),
  enable_safe_install: z.boolean().optional(),
  install_parameters: parameters.optional(),
  ...plainBody('installation'),
} as const;
/** The boot through the channel, for creations, reinstallations and changes. */
const booting = {
  bootenv: z.string().optional(),
  profiles: z.array(z.string()).optional(),
} as const;
/** The metadata that dialects offer, with documents as text. */
const metadata = {
  user_data: z.string().optional(),
  vendor_data: z.string().optional(),
  network_config: z.string().optional(),
  ssh_keys: z.array(z.string()).optional(),
  metadata: parameters.optional(),
  ...plainBody('metadata'),
} as const;

/** Returns the schema of plain settings by their names in bodies. The opcode checks the words. */
function plainBody(place: PlainPlace): Record<string, z.ZodOptional> {
  return Object.fromEntries(
    plainNames(place).map(([, name, type]) => {
      const value = 'list' in type ? z.array(z.string()) : z.string();
      return [name, ('isSwitch' in type ? z.boolean() : value).optional()];
    }),
  );
}

/** Returns the given settings of a place under their names in opcodes. */
export function readPlain(
  place: PlainPlace,
  given: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(plainNames(place).map(([key, name]) => [key, ownValue(given, name)]));
}

function plainNames(place: PlainPlace): readonly (readonly [string, string, ValueType])[] {
  return Object.entries(plainSettings).flatMap(([key, row]) =>
    row.place === place && 'rapi' in row ? [[key, row.rapi, row.type] as const] : [],
  );
}

export const createRequest = z.strictObject({
  ...withoutMeaning,
  ...beyondGaneti,
  ...booting,
  ...metadata,
  __version__: z.literal(1),
  mode: z.literal('create'),
  instance_name: z.string(),
  os_type: z.string().nullish(),
  force_variant: z.boolean().optional(),
  hypervisor: z.literal('kvm').nullish(),
  disk_template: z.string(),
  disks: z.array(disk).max(16),
  nics: z.array(nic).max(8),
  beparams: beparams.optional(),
  hvparams: parameters.optional(),
  osparams: osParameters.optional(),
  osparams_private: osParameters.optional(),
  osparams_secret: osParameters.optional(),
  pnode: z.string().nullish(),
  start: z.boolean().optional(),
  no_install: z.boolean().nullish(),
  instance_communication: z.boolean().optional(),
  tags: z.array(z.string()).optional(),
});

export const reinstallRequest = z.strictObject({
  ...common,
  ...beyondGaneti,
  ...booting,
  os: z.string().nullish(),
  force_variant: z.boolean().optional(),
  start: z.boolean().optional(),
  osparams: osParameterChanges.nullish(),
  osparams_private: osParameterChanges.nullish(),
  osparams_secret: osParameterChanges.nullish(),
  shutdown_timeout: seconds.optional(),
});

export const modifyRequest = z.strictObject({
  ...common,
  ...metadata,
  ...booting,
  force: ignored,
  os_name: z.string().nullish(),
  force_variant: z.boolean().optional(),
  osparams: osParameterChanges.nullish(),
  osparams_private: osParameterChanges.nullish(),
  osparams_secret: osParameterChanges.nullish(),
  beparams: beparams.optional(),
  hvparams: parameters.optional(),
  instance_communication: z.boolean().optional(),
  install_parameters: parameters.optional(),
  ...plainBody('installation'),
  personalization_package: text.nullable().optional(),
  personalization_checksum: text.nullable().optional(),
  // The disks and NICs of the instance cannot be changed here.
  disks: z.array(z.unknown()).max(0).optional(),
  nics: z.array(z.unknown()).max(0).optional(),
});

export const profileRequest = z.strictObject({
  ...common,
  osparams: osParameterChanges.optional(),
  osparams_private: osParameterChanges.optional(),
});

export const removeRequest = z.strictObject({
  ...common,
  shutdown_timeout: seconds.optional(),
});
export const shutdownRequest = z.strictObject({
  ...common,
  timeout: seconds.optional(),
  force: ignored,
});
export const rebootRequest = z.strictObject({ ...common, shutdown_timeout: seconds.optional() });
/** `amount` in MiB. */
export const growRequest = z.strictObject({
  ...withoutMeaning,
  amount: z.number().int().positive(),
  absolute: z.boolean().optional(),
});
export const migrateRequest = z.strictObject({
  ...common,
  mode: z.literal('live', { error: "expected 'live'" }).nullish(),
  cleanup: z.boolean().nullish(),
  target_node: z.string().nullish(),
  allow_failover: z.literal(false, { error: 'use the failover resource' }).nullish(),
  iallocator: ignored,
  ignore_ipolicy: ignored,
  allow_runtime_changes: ignored,
});
export const failoverRequest = z.strictObject({
  ...common,
  target_node: z.string().nullish(),
  iallocator: ignored,
  ignore_consistency: ignored,
  ignore_ipolicy: ignored,
  shutdown_timeout: ignored,
});
export const exportRequest = z.strictObject({
  ...common,
  mode: z.literal('local', { error: "expected 'local'" }).optional(),
  destination: z.string().optional(),
  shutdown: z.literal(true, { error: 'an export stops the instance' }).nullish(),
  shutdown_timeout: seconds.optional(),
  remove_instance: z.literal(false, { error: 'remove the instance by its own job' }).nullish(),
  ignore_remove_failures: ignored,
  x509_key_name: ignored,
  destination_x509_ca: ignored,
  compress: ignored,
  zero_free_space: ignored,
});
export const renameRequest = z.strictObject({ ...withoutMeaning, new_name: z.string() });

export type InstallationRequest = z.output<z.ZodObject<typeof beyondGaneti>>;
export type BootingRequest = z.output<z.ZodObject<typeof booting>>;
export type MetadataRequest = z.output<z.ZodObject<typeof metadata>>;
export type NicRequest = z.output<typeof nic>;
export type BackendRequest = z.output<typeof beparams>;
