import { hostKeys } from './host-keys.ts';
import { z } from 'zod';
import { applianceName } from './appliance-manifest.ts';
import { bootEnvName } from './boot-env.ts';
import { bootContent, bootObject } from './boot-objects.ts';
import { diskTemplate, volumePlace, zfsDataset } from './disk-template.ts';
import { autostartChanges } from './autostart.ts';
import {
  exposedServiceChanges,
  MAX_IMAGE_BYTES,
  MAX_IMAGE_CA_LENGTH,
  MAX_DOWNLOAD_TIMEOUT_S,
  MAX_MIN_DOWNLOAD_RATE,
  MAX_REMOTE_FOLDERS,
  MAX_REMOTE_HOSTS,
  dataRate,
  launchDefaults,
  lowSpacePercent,
  remoteFolder,
  remoteHost,
} from './cluster-settings.ts';
import { guestNetwork, MAX_GUEST_NETWORKS } from './guest-reach.ts';
import { hookFiles } from './hooks.ts';
import { boundedTable, boundedText } from './bounded-texts.ts';
import { identityChanges } from './identity.ts';
import { imageKeyName, MAX_IMAGE_KEY_LENGTH } from './image-keys.ts';
import { installTimeout } from './install-timeout.ts';
import { inputName, MAX_INPUTS, runLists } from './lifecycle.ts';
import {
  beParameterChanges,
  beParameters,
  diskSizeBytes,
  diskSpec,
  hvParameterChanges,
  hvParameters,
  installParameterChanges,
  installParameters,
  nicSpec,
} from './machine-parameters.ts';
import {
  macPrefix,
  networkConnection,
  networkName,
  networkRange,
  networkTags,
  newNetworkTags,
  reservedAddresses,
} from './network.ts';
import { osNameWithVariant } from './os-name.ts';
import { optionalSettings, source } from './plain-settings.ts';
import { profileName, profileNames } from './profile.ts';
import { diskChange, MAX_DISKS, MAX_NICS, nicChange } from './part-changes.ts';
import {
  base64,
  imageFormat,
  instanceName,
  mirrorName,
  mirrorUrl,
  newInstanceName,
  newTag,
  nodeName,
  osParameterName,
  snapshotName,
  tokenPolicy,
  uuid,
  fileName,
} from './primitives.ts';
import { relayName, relaySettings } from './relay.ts';
import { takeLoginsApart } from './source-login.ts';

/**
 * Operations of the node daemon: plain data, submitted as a job (`POST /v1/jobs`). Private and
 * secret OS parameters and the personalization password are only in the request. The store keeps
 * the result of `redactOpcode`.
 */
const MAX_NODES_NAMED = 1000;
const osParameterValues = boundedTable(osParameterName, boundedText);
/** `null` deletes the stored value. */
const osParameterChanges = boundedTable(osParameterName, boundedText.nullable());
/** 1 MiB of content. */
const document = base64.max(1_400_000);
const MAX_TAGS = 1000;
const newTags = z.array(newTag).max(MAX_TAGS);
/** Existing tags may be older than the rule for new ones. */
const tags = z.array(z.string().max(128)).max(MAX_TAGS);

export const imageChecksum = z
  .string()
  .regex(/^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/, 'expected sha256:HEX or sha512:HEX');

const reinstallable = {
  osType: osNameWithVariant.optional(),
  /** Accept a variant that the definition does not list. */
  forceVariant: z.boolean().optional(),
  osImage: source.optional(),
  osImageChecksum: imageChecksum.optional(),
  osImageGrow: z.boolean().optional(),
  /** `auto`: detected from the content. */
  osImageFormat: imageFormat.or(z.literal('auto')).optional(),
  personalizationPackage: source.optional(),
  personalizationChecksum: imageChecksum.optional(),
  personalizationUser: z.string().max(255).optional(),
  personalizationPassword: z.string().max(4096).optional(),
  safeInstall: z.boolean().optional(),
  installParameters: installParameters.optional(),
  ...optionalSettings('installation'),
  /** The appliance of this instance's installations. */
  appliance: applianceName.optional(),
  /** Hooks of the instance; replace stored ones. */
  hooks: hookFiles.optional(),
  osParameters: osParameterValues.default({}),
  osParametersPrivate: osParameterValues.default({}),
  osParametersSecret: osParameterValues.default({}),
  /** The boot environment that it boots through its channel. */
  bootEnv: bootEnvName.optional(),
  /** Replace stored ones; the first wins. */
  profiles: profileNames.optional(),
  start: z.boolean().default(true),
} as const;

/** `null` unsets the stored value. */
const takenBack = {
  osType: reinstallable.osType.unwrap().nullable().optional(),
  osImage: source.nullable().optional(),
  osImageChecksum: imageChecksum.nullable().optional(),
  personalizationPackage: source.nullable().optional(),
  personalizationChecksum: imageChecksum.nullable().optional(),
  appliance: applianceName.nullable().optional(),
  bootEnv: bootEnvName.nullable().optional(),
} as const;

export const instanceCreate = z.strictObject({
  opcode: z.literal('INSTANCE_CREATE'),
  name: newInstanceName,
  ...reinstallable,
  communication: z.boolean().default(false),
  userData: document.optional(),
  vendorData: document.optional(),
  networkConfig: document.optional(),
  sshKeys: z.array(z.string().max(16_384)).max(100).default([]),
  metadata: boundedTable(z.string().max(255), boundedText).default({}),
  tags: newTags.default([]),
  runLists: runLists.optional(),
  ...optionalSettings('metadata'),
  metadataToken: tokenPolicy.default('optional'),
  diskTemplate: diskTemplate.default('file'),
  disks: z.array(diskSpec).max(MAX_DISKS).default([]),
  nics: z.array(nicSpec).max(MAX_NICS).default([]),
  beparams: beParameters.partial().default({}),
  hvparams: hvParameters.default({}),
  node: nodeName.optional(),
  autostart: autostartChanges.optional(),
  install: z.boolean().default(true),
  /** Fate of an instance whose installation failed or was cancelled. */
  onFailure: z.enum(['keep', 'remove']).optional(),
  /** Stored with the instance. */
  installTimeoutS: installTimeout.optional(),
  /**
   * An export, by the name of its instance or its directory on the node. The `import` script runs
   * instead of `create`.
   */
  importFrom: source.optional(),
});

export const instanceReinstall = z.strictObject({
  opcode: z.literal('INSTANCE_REINSTALL'),
  name: instanceName,
  ...reinstallable,
  ...takenBack,
  /** Seconds for a running instance to shut down. Absent: a running instance is refused. */
  shutdownTimeoutS: z.number().nonnegative().optional(),
  /**
   * Keep the old disks until the new ones are complete, and restore them after a failure. Absent:
   * if there is room for both.
   */
  keepOld: z.boolean().optional(),
  /** For this run only. */
  installTimeoutS: installTimeout.optional(),
  installParameters: installParameterChanges.optional(),
  osParameters: osParameterChanges.default({}),
  osParametersPrivate: osParameterChanges.default({}),
  /** `null`: remove the secret. */
  osParametersSecret: osParameterChanges.default({}),
});

export const instanceModify = z.strictObject({
  opcode: z.literal('INSTANCE_SET_PARAMS'),
  name: instanceName,
  ...takenBack,
  forceVariant: reinstallable.forceVariant,
  osImageGrow: reinstallable.osImageGrow,
  osImageFormat: reinstallable.osImageFormat,
  profiles: reinstallable.profiles,
  osParameters: osParameterChanges.default({}),
  osParametersPrivate: osParameterChanges.default({}),
  /**
   * Held in memory for the channel until the next restart of the daemons; never stored. `null`:
   * remove the secret.
   */
  osParametersSecret: osParameterChanges.default({}),
  communication: z.boolean().optional(),
  userData: document.nullable().optional(),
  vendorData: document.nullable().optional(),
  networkConfig: document.nullable().optional(),
  sshKeys: z.array(z.string().max(16_384)).max(100).optional(),
  metadata: boundedTable(z.string().max(255), boundedText.nullable()).default({}),
  ...optionalSettings('metadata'),
  autostart: autostartChanges.optional(),
  /** `null`: the cluster's. */
  installTimeoutS: installTimeout.nullable().optional(),
  beparams: beParameterChanges.default({}),
  hvparams: hvParameterChanges.default({}),
  installParameters: installParameterChanges.optional(),
  ...optionalSettings('installation'),
  /** On a running instance they take effect at its next start, and no disk can be removed. */
  nics: z
    .array(nicChange)
    .max(2 * MAX_NICS)
    .default([]),
  disks: z.array(diskChange).max(MAX_DISKS).default([]),
  /** Hooks of the instance for its next installation; replace stored ones. */
  hooks: hookFiles.optional(),
  tags: tags.optional(),
  /** Run lists of the instance; replace stored ones. `null`: none. */
  runLists: runLists.nullable().optional(),
  /** Trusted SSH host keys of the guest; an empty list: trust the first keys that a run reports. */
  hostKeys: hostKeys.optional(),
  /** Refuse the change if the instance has another installation now. */
  instanceId: uuid.optional(),
  /** Added to the existing tags, or removed from them. */
  addTags: newTags.optional(),
  removeTags: tags.optional(),
});
/** Changes nothing. Its result is an InstanceInfo, because Ganeti answers by a job. */
export const instanceQuery = z.strictObject({
  opcode: z.literal('INSTANCE_QUERY_DATA'),
  name: instanceName,
});

export const instanceRemove = z.strictObject({
  opcode: z.literal('INSTANCE_REMOVE'),
  name: instanceName,
  shutdownTimeoutS: z.number().nonnegative().default(120),
});
/** Creates a record for an orphan, which runs on unchanged. */
export const instanceAdopt = z.strictObject({
  opcode: z.literal('INSTANCE_ADOPT'),
  /** Name at its start, or its unique UUID. */
  name: instanceName,
});
export const instanceRename = z.strictObject({
  opcode: z.literal('INSTANCE_RENAME'),
  name: instanceName,
  newName: newInstanceName,
  installTimeoutS: installTimeout.optional(),
});
/** Copies a stopped instance with its disks. The copy has an identity of its own. */
export const instanceCopy = z.strictObject({
  opcode: z.literal('INSTANCE_COPY'),
  name: instanceName,
  newName: newInstanceName,
});
/** Moves a stopped instance with its disks to another node. */
export const instanceMove = z.strictObject({
  opcode: z.literal('INSTANCE_MOVE'),
  name: instanceName,
  /** Absent: a node with room. */
  node: nodeName.optional(),
  /** Absent: the cluster's. */
  dataRate: dataRate.optional(),
});
/** Moves a running instance with its disks to another node. */
export const instanceMigrate = z.strictObject({
  opcode: z.literal('INSTANCE_MIGRATE'),
  name: instanceName,
  /** Absent: a node with room. */
  node: nodeName.optional(),
  /** Limit in seconds. Afterwards the guest stays on its node. */
  timeoutS: z.number().int().min(10).max(604_800).default(3600),
  /** Absent: the cluster's. It does not hold while the guest is paused. */
  dataRate: dataRate.optional(),
  /** Only clean up after an interrupted migration, on all nodes. */
  cleanup: z.literal(true).optional(),
});
/** Moves an instance of a failed node to another node that has its disks too. */
export const instanceFailover = z.strictObject({
  opcode: z.literal('INSTANCE_FAILOVER'),
  name: instanceName,
  /** Absent: a node with room. */
  node: nodeName.optional(),
});
export const instanceStartup = z.strictObject({
  opcode: z.literal('INSTANCE_STARTUP'),
  name: instanceName,
  /** Secrets for the channel of this run. The record keeps their names. */
  osParametersSecret: osParameterValues.default({}),
});
export const instanceShutdown = z.strictObject({
  opcode: z.literal('INSTANCE_SHUTDOWN'),
  name: instanceName,
  /** Seconds for the guest to shut down by ACPI before it is powered off. */
  timeoutS: z.number().nonnegative().default(120),
});
export const instanceReboot = z.strictObject({
  opcode: z.literal('INSTANCE_REBOOT'),
  name: instanceName,
  kind: z.enum(['soft', 'hard', 'full']).default('soft'),
  timeoutS: z.number().nonnegative().default(120),
});
/** Runs a script of the operational list in the guest, and waits for its end. */
export const instanceRunScript = z.strictObject({
  opcode: z.literal('INSTANCE_RUN_SCRIPT'),
  name: instanceName,
  /** Its name, with or without its number in the list. */
  script: z.string().min(1).max(128),
  /** Variables of this run; never stored. */
  inputs: boundedTable(inputName, boundedText.regex(/^[^\0]*$/, 'contains a NUL character'))
    .refine((inputs) => Object.keys(inputs).length <= MAX_INPUTS, `more than ${MAX_INPUTS} inputs`)
    .default({}),
});
export const instanceGrowDisk = z.strictObject({
  opcode: z.literal('INSTANCE_GROW_DISK'),
  name: instanceName,
  /** Number of the disk, from 0. */
  disk: z
    .number()
    .int()
    .min(0)
    .max(MAX_DISKS - 1),
  amountBytes: diskSizeBytes,
  /** The amount is the new size instead of an increment. */
  absolute: z.boolean().default(false),
});
/** Takes a snapshot of the disks, also of a running instance. */
export const instanceSnapshot = z.strictObject({
  opcode: z.literal('INSTANCE_SNAPSHOT'),
  name: instanceName,
  snapshot: snapshotName,
  /** Copy the disks while the guest is paused, if the file system cannot share blocks. */
  copy: z.boolean().optional(),
});
/** Restores the disks of a stopped instance. Later writes are lost. */
export const instanceRestore = z.strictObject({
  opcode: z.literal('INSTANCE_RESTORE'),
  name: instanceName,
  snapshot: snapshotName,
});
export const instanceRemoveSnapshot = z.strictObject({
  opcode: z.literal('INSTANCE_REMOVE_SNAPSHOT'),
  name: instanceName,
  snapshot: snapshotName,
});
/** Exports the disks with the `export` script of the OS, to a directory of the node. */
export const backupExport = z.strictObject({
  opcode: z.literal('BACKUP_EXPORT'),
  name: instanceName,
  /** Seconds for a running instance to shut down. It is started again afterwards. */
  shutdownTimeoutS: z.number().nonnegative().default(120),
  installTimeoutS: installTimeout.optional(),
});
export const backupRemove = z.strictObject({
  opcode: z.literal('BACKUP_REMOVE'),
  name: instanceName,
});

export const osModify = z.strictObject({
  opcode: z.literal('OS_SET_PARAMS'),
  name: osNameWithVariant,
  trusted: z.boolean().optional(),
  hidden: z.boolean().optional(),
  blacklisted: z.boolean().optional(),
  safeInstall: z.enum(['optional', 'required']).optional(),
  /** Of installations with this OS; `null`: the cluster's. */
  appliance: applianceName.nullable().optional(),
  osParameters: osParameterChanges.default({}),
  osParametersPrivate: osParameterChanges.default({}),
});
/**
 * Changes or creates a profile. Profiles are stored and have no secrets; their public values are
 * shown.
 */
export const profileModify = z.strictObject({
  opcode: z.literal('PROFILE_SET_PARAMS'),
  name: profileName,
  osParameters: osParameterChanges.default({}),
  osParametersPrivate: osParameterChanges.default({}),
});
export const profileRemove = z.strictObject({
  opcode: z.literal('PROFILE_REMOVE'),
  name: profileName,
});
const aboutNetwork = { name: networkName } as const;
/** Adds a network. Nodes are connected separately. */
export const networkAdd = z.strictObject({
  opcode: z.literal('NETWORK_ADD'),
  ...aboutNetwork,
  network: networkRange,
  gateway: z.ipv4().optional(),
  macPrefix: macPrefix.optional(),
  addReserved: reservedAddresses.default([]),
  tags: newNetworkTags.default([]),
});
/** Absent values stay; `null` unsets a value. */
export const networkModify = z.strictObject({
  opcode: z.literal('NETWORK_SET_PARAMS'),
  ...aboutNetwork,
  gateway: z.ipv4().nullable().optional(),
  macPrefix: macPrefix.nullable().optional(),
  addReserved: reservedAddresses.default([]),
  removeReserved: reservedAddresses.default([]),
  addTags: newNetworkTags.default([]),
  removeTags: networkTags.default([]),
});
export const networkConnect = z.strictObject({
  opcode: z.literal('NETWORK_CONNECT'),
  ...aboutNetwork,
  /** Empty: all nodes. */
  nodes: z.array(nodeName).max(MAX_NODES_NAMED).default([]),
  connection: networkConnection,
});
export const networkDisconnect = z.strictObject({
  opcode: z.literal('NETWORK_DISCONNECT'),
  ...aboutNetwork,
  /** Empty: all connected nodes. */
  nodes: z.array(nodeName).max(MAX_NODES_NAMED).default([]),
});
export const networkRemove = z.strictObject({
  opcode: z.literal('NETWORK_REMOVE'),
  ...aboutNetwork,
});
/** Stores all objects, or none if one is invalid. */
export const bootEnvSet = z.strictObject({
  opcode: z.literal('BOOTENV_SET'),
  ...bootContent,
});
export const bootEnvRemove = z.strictObject({
  opcode: z.literal('BOOTENV_REMOVE'),
  object: bootObject,
});
/** Extracts the archive of a BootEnv on the node that runs the job. */
export const bootEnvUploadIso = z.strictObject({
  opcode: z.literal('BOOTENV_UPLOAD_ISO'),
  bootEnv: bootEnvName,
  /** Absent: its IsoUrl. */
  source: source.optional(),
});
/** Removes an extracted archive from the node that runs the job. */
export const bootEnvDestroyIso = z.strictObject({
  opcode: z.literal('BOOTENV_DESTROY_ISO'),
  isoFile: fileName,
});
export const clusterModify = z.strictObject({
  opcode: z.literal('CLUSTER_SET_PARAMS'),
  /** Seconds; 0 means none. */
  installTimeoutS: installTimeout.optional(),
  hostScripts: z.boolean().optional(),
  /** An imported appliance; `null`: the built one. */
  appliance: applianceName.nullable().optional(),
  /** For new instances without an OS, an image and a medium; `null`: none. */
  defaultOs: osNameWithVariant.nullable().optional(),
  /** `null` unsets a field. */
  launchDefaults: z
    .strictObject({
      diskBytes: launchDefaults.shape.diskBytes.unwrap().nullable().optional(),
      memoryMiB: launchDefaults.shape.memoryMiB.unwrap().nullable().optional(),
      vcpus: launchDefaults.shape.vcpus.unwrap().nullable().optional(),
      net: launchDefaults.shape.net.unwrap().nullable().optional(),
    })
    .optional(),
  /** Limit of a published image. */
  maxImageBytes: z.number().int().positive().max(MAX_IMAGE_BYTES).optional(),
  /** Seconds for a whole download; 0 means none. */
  downloadTimeoutS: z.number().int().nonnegative().max(MAX_DOWNLOAD_TIMEOUT_S).optional(),
  /** Minimum bytes per second of a server; 0 means none. */
  minDownloadRate: z.number().int().nonnegative().max(MAX_MIN_DOWNLOAD_RATE).optional(),
  /** PEM certificates that are trusted for image and package servers; `null`: only the system's. */
  imageCa: z.string().max(MAX_IMAGE_CA_LENGTH).nullable().optional(),
  /**
   * Folders of the nodes below which the remote API may name images, packages, media and kernels;
   * replace the former ones.
   */
  remoteFolders: z.array(remoteFolder).max(MAX_REMOTE_FOLDERS).optional(),
  /** Shared folder of all nodes for disks of the template `sharedfile`; `null`: none. */
  sharedFileStorageDir: remoteFolder.nullable().optional(),
  /** Volume group, or thin pool, of new disks of the template `plain`; `null`: none. */
  vgName: volumePlace.nullable().optional(),
  /** ZFS pool, or dataset, of new disks of the template `zfs`; `null`: none. */
  zfsPool: zfsDataset.nullable().optional(),
  /** Jobs and the doctor warn below this share of free space; 0: never. */
  lowSpacePercent: lowSpacePercent.optional(),
  /** Bytes per second that each move or migration sends at most; 0: no limit. */
  dataRate: dataRate.optional(),
  /** Targets outside the internet that URLs of the remote API may have; replace the former ones. */
  remoteHosts: z.array(remoteHost).max(MAX_REMOTE_HOSTS).optional(),
  /** Every NIC has `reach=public`. */
  confineGuests: z.boolean().optional(),
  /** Private networks that NICs with `reach=public` reach; replaces the former ones. */
  guestNetworks: z.array(guestNetwork).max(MAX_GUEST_NETWORKS).optional(),
  /** NAME=PORT:HOST:PORT or NAME=PORT:unix:PATH; null removes NAME. */
  exposeServices: exposedServiceChanges.default({}),
  /**
   * NAME=TEXT of a public key of minisign or OpenPGP; null removes NAME. With at least one key,
   * images and packages must be signed.
   */
  imageKeys: z.record(imageKeyName, z.string().max(MAX_IMAGE_KEY_LENGTH).nullable()).optional(),
  /** NAME=URL; null removes NAME. */
  packageMirrors: z.record(mirrorName, mirrorUrl.nullable()).default({}),
  /** Signed identities of instances. The first permission creates the keys. */
  identity: identityChanges.optional(),
  /** Relays by name; each replaces the former one, and null removes it. */
  relays: z.record(relayName, relaySettings.nullable()).optional(),
  addTags: newTags.optional(),
  removeTags: tags.optional(),
});

/** Sets flags of a node; absent ones stay. */
export const nodeModify = z
  .strictObject({
    opcode: z.literal('NODE_SET_PARAMS'),
    name: instanceName,
    drained: z.boolean().optional(),
    offline: z.boolean().optional(),
  })
  .refine(
    ({ drained, offline }) => !(drained === true && offline === true),
    'a node can be drained or offline, but not both',
  )
  .refine(
    ({ drained, offline }) => drained !== undefined || offline !== undefined,
    'nothing to change: give drained or offline',
  );

/** Longest wait of TEST_DELAY: one day. */
export const MAX_DELAY_S = 86_400;

/** Waits and changes nothing, for tests of monitoring. */
export const testDelay = z.strictObject({
  opcode: z.literal('TEST_DELAY'),
  durationS: z.number().nonnegative().max(MAX_DELAY_S),
});

/** Parsed opcodes have no URL with a login. */
export const opcode = z
  .discriminatedUnion('opcode', [
    instanceCreate,
    instanceReinstall,
    instanceModify,
    instanceQuery,
    instanceRemove,
    instanceAdopt,
    instanceRename,
    instanceCopy,
    instanceMove,
    instanceMigrate,
    instanceFailover,
    instanceStartup,
    instanceShutdown,
    instanceReboot,
    instanceGrowDisk,
    instanceRunScript,
    instanceSnapshot,
    instanceRestore,
    instanceRemoveSnapshot,
    backupExport,
    backupRemove,
    osModify,
    profileModify,
    profileRemove,
    networkAdd,
    networkModify,
    networkConnect,
    networkDisconnect,
    networkRemove,
    bootEnvSet,
    bootEnvRemove,
    bootEnvUploadIso,
    bootEnvDestroyIso,
    clusterModify,
    nodeModify,
    testDelay,
  ])
  .check(takeLoginsApart);
export type Opcode = z.infer<typeof opcode>;
/** Input of clients, before defaults. */
export type OpcodeInput = z.input<typeof opcode>;
export type OpcodeName = Opcode['opcode'];
export type OpcodeOf<Name extends OpcodeName> = Extract<Opcode, { opcode: Name }>;
