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
  launchDefaults,
  lowSpacePercent,
  remoteFolder,
  remoteHost,
} from './cluster-settings.ts';
import { guestNetwork, MAX_GUEST_NETWORKS } from './guest-reach.ts';
import { hookFiles } from './hooks.ts';
import { boundedTable, boundedText } from './bounded-texts.ts';
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
  osParameterName,
  snapshotName,
  tokenPolicy,
  uuid,
  fileName,
} from './primitives.ts';
import { takeLoginsApart } from './source-login.ts';

/**
 * What an operator may ask of the node daemon: plain data, submitted as a job (`POST /v1/jobs`).
 * Private and secret OS parameters, and the personalization password, are in the request only:
 * `redactOpcode` is what is kept of it.
 */
const MAX_NODES_NAMED = 1000;
const osParameterValues = boundedTable(osParameterName, boundedText);
/** `null` deletes the stored value. */
const osParameterChanges = boundedTable(osParameterName, boundedText.nullable());
/** 1 MiB of content. */
const document = base64.max(1_400_000);
const MAX_TAGS = 1000;
const newTags = z.array(newTag).max(MAX_TAGS);
/** Those that are there may be of before there was a rule. */
const tags = z.array(z.string().max(128)).max(MAX_TAGS);

export const imageChecksum = z
  .string()
  .regex(/^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/, 'expected sha256:HEX or sha512:HEX');

const reinstallable = {
  osType: osNameWithVariant.optional(),
  /** The variant is taken although the definition does not list it. */
  forceVariant: z.boolean().optional(),
  osImage: source.optional(),
  osImageChecksum: imageChecksum.optional(),
  osImageGrow: z.boolean().optional(),
  /** `auto`: found by content. */
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
  /** Hooks of the instance, in place of stored ones. */
  hooks: hookFiles.optional(),
  osParameters: osParameterValues.default({}),
  osParametersPrivate: osParameterValues.default({}),
  osParametersSecret: osParameterValues.default({}),
  /** What it boots into through its channel. */
  bootEnv: bootEnvName.optional(),
  /** In place of stored ones; the first counts more than those after it. */
  profiles: profileNames.optional(),
  start: z.boolean().default(true),
} as const;

/** `null`: what is stored is not installed any more. */
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
  node: instanceName.optional(),
  autostart: autostartChanges.optional(),
  install: z.boolean().default(true),
  /** What becomes of an instance whose installation failed or was cancelled. */
  onFailure: z.enum(['keep', 'remove']).optional(),
  /** Kept with the instance. */
  installTimeoutS: installTimeout.optional(),
  /**
   * An export, by the name of its instance or its directory on the node: the `import` script takes
   * the place of `create`.
   */
  importFrom: source.optional(),
});

export const instanceReinstall = z.strictObject({
  opcode: z.literal('INSTANCE_REINSTALL'),
  name: instanceName,
  ...reinstallable,
  ...takenBack,
  /**
   * A running instance is stopped first, with this many seconds to obey; without it, it is refused.
   */
  shutdownTimeoutS: z.number().nonnegative().optional(),
  /**
   * The old disks stay until the new ones are whole, and are the instance's again when they never
   * are. Absent: where there is room for both.
   */
  keepOld: z.boolean().optional(),
  /** Of this run, whatever is stored. */
  installTimeoutS: installTimeout.optional(),
  installParameters: installParameterChanges.optional(),
  osParameters: osParameterChanges.default({}),
  osParametersPrivate: osParameterChanges.default({}),
  /** `null`: the secret is not needed any more. */
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
   * Held in memory for the channel until the next restart of the daemons; never stored. `null`: it
   * is not needed any more.
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
  /** Of a running instance they take effect at its next start, and none of its disks is removed. */
  nics: z
    .array(nicChange)
    .max(2 * MAX_NICS)
    .default([]),
  disks: z.array(diskChange).max(MAX_DISKS).default([]),
  /** Hooks of the instance, in place of stored ones, for its next installation. */
  hooks: hookFiles.optional(),
  tags: tags.optional(),
  /** Run lists of the instance, in place of stored ones; `null`: none. */
  runLists: runLists.nullable().optional(),
  /**
   * SSH host keys of the guest that are trusted from now on; an empty list: those that it says
   * first in a run.
   */
  hostKeys: hostKeys.optional(),
  /** The installation that is meant: when there is another one by now, nothing is changed. */
  instanceId: uuid.optional(),
  /** Put to the tags that there are, or taken from them. */
  addTags: newTags.optional(),
  removeTags: tags.optional(),
});
/** Changes nothing: its result is an InstanceInfo, as Ganeti tells it by a job. */
export const instanceQuery = z.strictObject({
  opcode: z.literal('INSTANCE_QUERY_DATA'),
  name: instanceName,
});

export const instanceRemove = z.strictObject({
  opcode: z.literal('INSTANCE_REMOVE'),
  name: instanceName,
  shutdownTimeoutS: z.number().nonnegative().default(120),
});
/** Of a machine that runs without a record: it is an instance again, and runs on untouched. */
export const instanceAdopt = z.strictObject({
  opcode: z.literal('INSTANCE_ADOPT'),
  /** As it was called, or its UUID, which is a name that no two have. */
  name: instanceName,
});
export const instanceRename = z.strictObject({
  opcode: z.literal('INSTANCE_RENAME'),
  name: instanceName,
  newName: newInstanceName,
  installTimeoutS: installTimeout.optional(),
});
/** Another instance like a stopped one, its disks included, with an identity of its own. */
export const instanceCopy = z.strictObject({
  opcode: z.literal('INSTANCE_COPY'),
  name: instanceName,
  newName: newInstanceName,
});
/** A stopped instance to another node, with its disks. */
export const instanceMove = z.strictObject({
  opcode: z.literal('INSTANCE_MOVE'),
  name: instanceName,
  /** Absent: where there is room. */
  node: instanceName.optional(),
});
/** A running instance to another node, with its disks, while its guest goes on. */
export const instanceMigrate = z.strictObject({
  opcode: z.literal('INSTANCE_MIGRATE'),
  name: instanceName,
  /** Absent: where there is room. */
  node: instanceName.optional(),
  /** Seconds in which it has to be over, or the guest stays where it is. */
  timeoutS: z.number().int().min(10).max(604_800).default(3600),
  /** It goes nowhere: what a migration that was cut short has left is ended, on all nodes. */
  cleanup: z.literal(true).optional(),
});
/** An instance of a node that is down to another one, which has its disks too. */
export const instanceFailover = z.strictObject({
  opcode: z.literal('INSTANCE_FAILOVER'),
  name: instanceName,
  /** Absent: where there is room. */
  node: instanceName.optional(),
});
export const instanceStartup = z.strictObject({
  opcode: z.literal('INSTANCE_STARTUP'),
  name: instanceName,
  /** Secrets for the channel of this run; the record keeps their names. */
  osParametersSecret: osParameterValues.default({}),
});
export const instanceShutdown = z.strictObject({
  opcode: z.literal('INSTANCE_SHUTDOWN'),
  name: instanceName,
  /** Seconds for the guest to obey ACPI before it is powered off. */
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
  /** Its number: 0 is the first. */
  disk: z
    .number()
    .int()
    .min(0)
    .max(MAX_DISKS - 1),
  amountBytes: diskSizeBytes,
  /** The amount is the new size, not what is added. */
  absolute: z.boolean().default(false),
});
/** A moment of the disks, of a running instance too. */
export const instanceSnapshot = z.strictObject({
  opcode: z.literal('INSTANCE_SNAPSHOT'),
  name: instanceName,
  snapshot: snapshotName,
  /** Where blocks cannot be shared, disks are copied while the guest stands still. */
  copy: z.boolean().optional(),
});
/** The disks of a stopped instance are what they were; what was written since is lost. */
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
/** Dumps of an instance's disks by the `export` script of its OS, in a directory of the node. */
export const backupExport = z.strictObject({
  opcode: z.literal('BACKUP_EXPORT'),
  name: instanceName,
  /** Seconds for a running instance to obey; it is started again afterwards. */
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
 * Makes a profile where there is none. Secrets are of instances: what a profile has is stored, and
 * shown (public) or not (private).
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
/** Addresses for cards: it is of no node until it is connected. */
export const networkAdd = z.strictObject({
  opcode: z.literal('NETWORK_ADD'),
  ...aboutNetwork,
  network: networkRange,
  gateway: z.ipv4().optional(),
  macPrefix: macPrefix.optional(),
  addReserved: reservedAddresses.default([]),
  tags: newNetworkTags.default([]),
});
/** What is not given stays; `null` takes a value away. */
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
  /** Empty: all that there are. */
  nodes: z.array(instanceName).max(MAX_NODES_NAMED).default([]),
  connection: networkConnection,
});
export const networkDisconnect = z.strictObject({
  opcode: z.literal('NETWORK_DISCONNECT'),
  ...aboutNetwork,
  /** Empty: all that it is connected on. */
  nodes: z.array(instanceName).max(MAX_NODES_NAMED).default([]),
});
export const networkRemove = z.strictObject({
  opcode: z.literal('NETWORK_REMOVE'),
  ...aboutNetwork,
});
/** Everything in it is as it has to be, or nothing of it is taken. */
export const bootEnvSet = z.strictObject({
  opcode: z.literal('BOOTENV_SET'),
  ...bootContent,
});
export const bootEnvRemove = z.strictObject({
  opcode: z.literal('BOOTENV_REMOVE'),
  object: bootObject,
});
/** Opens the archive of a BootEnv on the node that runs it. */
export const bootEnvUploadIso = z.strictObject({
  opcode: z.literal('BOOTENV_UPLOAD_ISO'),
  bootEnv: bootEnvName,
  /** Absent: its IsoUrl. */
  source: source.optional(),
});
/** Takes an opened archive from the node that runs it. */
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
  /** Of new instances that name neither an OS nor an image nor a medium; `null`: none. */
  defaultOs: osNameWithVariant.nullable().optional(),
  /** A field that is `null` is forgotten. */
  launchDefaults: z
    .strictObject({
      diskBytes: launchDefaults.shape.diskBytes.unwrap().nullable().optional(),
      memoryMiB: launchDefaults.shape.memoryMiB.unwrap().nullable().optional(),
      vcpus: launchDefaults.shape.vcpus.unwrap().nullable().optional(),
      net: launchDefaults.shape.net.unwrap().nullable().optional(),
    })
    .optional(),
  /** Of an image as it is published. */
  maxImageBytes: z.number().int().positive().max(MAX_IMAGE_BYTES).optional(),
  /** Seconds for a whole download; 0 means none. */
  downloadTimeoutS: z.number().int().nonnegative().max(MAX_DOWNLOAD_TIMEOUT_S).optional(),
  /** Bytes a second below which a server is given up; 0 means none. */
  minDownloadRate: z.number().int().nonnegative().max(MAX_MIN_DOWNLOAD_RATE).optional(),
  /**
   * PEM certificates that servers of images and packages are trusted by; `null`: the system's only.
   */
  imageCa: z.string().max(MAX_IMAGE_CA_LENGTH).nullable().optional(),
  /**
   * Folders of the nodes below which the remote API may name images, packages, media and kernels;
   * replaces those that there are.
   */
  remoteFolders: z.array(remoteFolder).max(MAX_REMOTE_FOLDERS).optional(),
  /**
   * Where all nodes have the same folder, for disks of the template `sharedfile`; `null`: nowhere.
   */
  sharedFileStorageDir: remoteFolder.nullable().optional(),
  /** Volume group, or thin pool, of new disks of the template `plain`; `null`: none. */
  vgName: volumePlace.nullable().optional(),
  /** ZFS pool, or dataset, of new disks of the template `zfs`; `null`: none. */
  zfsPool: zfsDataset.nullable().optional(),
  /** Where less of a file system is free, jobs and the doctor warn; 0: never. */
  lowSpacePercent: lowSpacePercent.optional(),
  /** What, beside the internet, URLs of the remote API may lead to; replaces what there is. */
  remoteHosts: z.array(remoteHost).max(MAX_REMOTE_HOSTS).optional(),
  /** Every NIC has `reach=public`. */
  confineGuests: z.boolean().optional(),
  /** Private networks that NICs with `reach=public` reach; replaces the former ones. */
  guestNetworks: z.array(guestNetwork).max(MAX_GUEST_NETWORKS).optional(),
  /** NAME=PORT:HOST:PORT or NAME=PORT:unix:PATH; null removes NAME. */
  exposeServices: exposedServiceChanges.default({}),
  /**
   * NAME=TEXT of a public key of minisign or OpenPGP; null removes NAME. Once there is one, images
   * and packages must be signed.
   */
  imageKeys: z.record(imageKeyName, z.string().max(MAX_IMAGE_KEY_LENGTH).nullable()).optional(),
  /** NAME=URL; null removes NAME. */
  packageMirrors: z.record(mirrorName, mirrorUrl.nullable()).default({}),
  addTags: newTags.optional(),
  removeTags: tags.optional(),
});

/** What an operator says of a node; what is not given stays. */
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

/** No URL of what it lets through has a login in it. */
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
  ])
  .check(takeLoginsApart);
export type Opcode = z.infer<typeof opcode>;
/** As a client writes it, before defaults. */
export type OpcodeInput = z.input<typeof opcode>;
export type OpcodeName = Opcode['opcode'];
export type OpcodeOf<Name extends OpcodeName> = Extract<Opcode, { opcode: Name }>;
