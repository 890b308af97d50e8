import {
  beparams,
  beyondGaneti,
  booting,
  common,
  defaultOnly,
  ganetiCreate,
  ignored,
  metadata,
  NAMED,
  osParameterChanges,
  parameters,
  plainBody,
  size,
  text,
  withoutMeaning,
} from '#shared/contract/ganeti-create.ts';
import { z } from 'zod';
import { diskChange, nicChange } from './instance-parts.ts';

/** Bodies of requests, by Ganeti's names. The opcodes check the values. */
const seconds = z.number().nonnegative();
const uuidOfInstance = { instance_uuid: defaultOnly(NAMED) } as const;

export const createRequest = ganetiCreate.extend({
  __version__: z.literal(1),
  mode: z.literal('create'),
});

export const reinstallRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
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

const conversion = defaultOnly('disks cannot change their template');
const moves = defaultOnly('move the instance by PUT /2/instances/NAME/migrate');

export const modifyRequest = z.strictObject({
  ...withoutMeaning,
  ...uuidOfInstance,
  ...metadata,
  ...booting,
  force: ignored,
  /** Disks and NICs are added to a running instance at once where possible. */
  ...{ hotplug: ignored, hotplug_if_possible: ignored },
  runtime_mem: defaultOnly('the memory of a guest changes at its next start'),
  ...{ disk_template: conversion, file_storage_dir: conversion },
  ext_params: z.strictObject({}, { error: 'there are no external storage providers' }).optional(),
  ...{ pnode: moves, pnode_uuid: moves, iallocator: moves },
  ...{ remote_node: moves, remote_node_uuid: moves },
  offline: defaultOnly('an instance is up or down; there is no offline state', false),
  os_name: z.string().nullish(),
  force_variant: z.boolean().optional(),
  osparams: osParameterChanges.nullish(),
  osparams_private: osParameterChanges.nullish(),
  osparams_secret: osParameterChanges.nullish(),
  beparams: beparams.optional(),
  hvparams: parameters.optional(),
  instance_communication: z.boolean().nullish(),
  install_parameters: parameters.optional(),
  ...plainBody('installation'),
  personalization_package: text.nullable().optional(),
  personalization_checksum: text.nullable().optional(),
  disks: z.array(diskChange).max(16).optional(),
  nics: z.array(nicChange).max(16).optional(),
});

export const profileRequest = z.strictObject({
  ...common,
  osparams: osParameterChanges.optional(),
  osparams_private: osParameterChanges.optional(),
});

export const removeRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  shutdown_timeout: seconds.optional(),
  ignore_failures: defaultOnly('repeat a failed removal', false),
});
export const shutdownRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  timeout: seconds.optional(),
  force: ignored,
  ignore_offline_nodes: defaultOnly('the node of the instance must answer', false),
  no_remember: defaultOnly('a shutdown always changes the desired state', false),
  admin_state_source: ignored,
});
export const rebootRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  shutdown_timeout: seconds.optional(),
  ignore_secondaries: ignored,
});
/** `amount` in MiB. */
export const growRequest = z.strictObject({
  ...withoutMeaning,
  ...uuidOfInstance,
  amount: size,
  absolute: z.boolean().optional(),
});
export const migrateRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  live: defaultOnly('migrations are always live', true),
  target_node_uuid: defaultOnly(NAMED),
  ignore_hvversions: ignored,
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
  ...uuidOfInstance,
  target_node_uuid: defaultOnly(NAMED),
  cleanup: defaultOnly('a failover leaves nothing to clean up', false),
  target_node: z.string().nullish(),
  iallocator: ignored,
  ignore_consistency: ignored,
  ignore_ipolicy: ignored,
  shutdown_timeout: ignored,
});
export const exportRequest = z.strictObject({
  ...common,
  ...uuidOfInstance,
  target_node_uuid: defaultOnly(NAMED),
  ...{ zeroing_timeout_fixed: ignored, zeroing_timeout_per_mib: ignored, long_sleep: ignored },
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
export const renameRequest = z.strictObject({
  ...withoutMeaning,
  ...uuidOfInstance,
  new_name: z.string(),
});
