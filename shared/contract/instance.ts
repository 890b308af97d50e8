import { z } from 'zod';
import { applianceInForce } from './appliance-choice.ts';
import { autostart, DEFAULT_AUTOSTART } from './autostart.ts';
import { bootEnvName } from './boot-env.ts';
import { bootReport } from './boot-report.ts';
import { diskTemplate, volumeGroupName, zfsDataset } from './disk-template.ts';
import { hostKeys, knownHostKeys, loginUser, sshInfo } from './host-keys.ts';
import { hostRoom } from './host-room.ts';
import { nicReach } from './guest-reach.ts';
import { hookFiles } from './hooks.ts';
import { installTimeout } from './install-timeout.ts';
import { lifecycleInfo, lifecycleRecord, runListName, runLists } from './lifecycle.ts';
import { beParameters, hvParameters } from './machine-parameters.ts';
import {
  channelIp,
  dialect,
  imageFormat,
  installStage,
  instanceName,
  macAddress,
  snapshotName,
  uuid,
  visibility,
} from './primitives.ts';
import { networkName } from './network.ts';
import type { PlainKey } from './parameter-keys.ts';
import { byKey, storedSettings } from './plain-settings.ts';
import { profileNames } from './profile.ts';
import { nicNetwork } from './static-network.ts';

const stageTiming = z.object({ stage: installStage, durationMs: z.number(), summary: z.string() });
export type StageTiming = z.infer<typeof stageTiming>;

/** For parts that come while a machine runs. */
export const MAX_PORTS = 8;

/** How the last installation went. */
export const installRecord = z.object({
  jobId: z.number().int(),
  state: z.enum(['installing', 'success', 'failed', 'canceled']),
  startedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
  stage: installStage.nullable(),
  error: z
    .object({ code: z.string(), message: z.string(), hint: z.string().nullable() })
    .nullable(),
  stages: z.array(stageTiming),
  logFile: z.string().nullable(),
});
export type InstallRecord = z.infer<typeof installRecord>;

const adminState = z.enum(['up', 'down']);

/** What an instance was before a reinstallation that has not destroyed anything yet. */
const formerState = z.object({
  adminState,
  installState: z.enum(['created', 'installed', 'failed']),
  install: installRecord.nullable(),
});

/**
 * Of a part that came while a machine ran: where it stays, so that its guest finds it again by the
 * same name. Absent: it has the slot of its number.
 */
const port = z
  .number()
  .int()
  .min(0)
  .max(MAX_PORTS - 1)
  .optional();

export const instanceNic = z.object({
  uuid,
  mac: macAddress,
  mode: z.enum(['bridged', 'user']),
  link: z.string().nullable(),
  name: z.string().nullable(),
  ip: z.string().nullable(),
  /** Which network of the cluster it is in, whose bridge is another on each node. */
  networkName: networkName.optional(),
  /** Null: the guest asks by DHCP. */
  network: nicNetwork.nullable().default(null),
  /** Absent: `all`. */
  reach: nicReach.optional(),
  port,
});

export const instanceDisk = z.object({
  uuid,
  name: z.string().nullable(),
  sizeBytes: z.number().int().positive(),
  port,
  /** Of the template `plain`: the volume group that its volume is in. */
  vg: volumeGroupName.optional(),
  /** The thin pool of that group that its blocks come from. Absent: it has extents of its own. */
  pool: volumeGroupName.optional(),
  /** Of the template `zfs`: the dataset that its volume is in. */
  dataset: zfsDataset.optional(),
});
/** Each takes the blocks that were changed since. */
export const MAX_SNAPSHOTS = 64;
/** Its disks, of one moment, and what is true of them alone. */
export const instanceSnapshot = z.object({
  uuid,
  name: snapshotName,
  takenAtMs: z.number(),
  /** What its guest had in memory is not in it: it is like after a power cut. */
  wasRunning: z.boolean(),
  /** The installation that is on these disks. */
  instanceId: uuid,
  installState: z.enum(['created', 'installed']),
  disks: z.array(instanceDisk),
  /** What ssh checked its guest against. */
  hostKeys: knownHostKeys.nullable().default(null),
});
export type InstanceSnapshot = z.infer<typeof instanceSnapshot>;
export type InstanceNic = z.infer<typeof instanceNic>;
export type InstanceDisk = z.infer<typeof instanceDisk>;

/**
 * The channel's address and MAC stay with an instance for life, whether the channel is on or off.
 */
export const instanceChannel = z.object({ ip: channelIp, mac: macAddress, uuid });

/** What the guest of a run said of itself: of its words who said them, and cloud-init's errors. */
const guestReport = z.object({
  /** Which run, as of a machine's start; what is of another run counts for nothing. */
  runStartedAtMs: z.number(),
  /** When it said first that it is up. */
  readyAtMs: z.number().nullable(),
  /** Who said it, as `cloud-init`. */
  readySource: z.string().max(64).nullable(),
  /** How far its cloud-init got; null when that says nothing. Absent in older records. */
  boot: bootReport.nullable().default(null),
  /** Which keys its sshd has, and whom the operator's keys let in. Absent in older records. */
  hostKeys: hostKeys.default([]),
  /** Those that it said first in this run, whatever it says later. Absent in older records. */
  firstHostKeys: hostKeys.default([]),
  loginUser: loginUser.nullable().default(null),
  /** Events of metad up to this one are of a boot that a reset ended. Absent in older records. */
  afterSequence: z.number().int().default(0),
});
export type GuestReport = z.infer<typeof guestReport>;

/** A line of what a guest says of its boot. */
export const guestProgress = z.object({
  isRunning: z.boolean(),
  /** Null where it has no run lists. A node of an earlier release does not say. */
  lifecycle: lifecycleInfo.nullish(),
  readyAtMs: z.number().nullable(),
  boot: bootReport.nullable(),
});
export type GuestProgress = z.infer<typeof guestProgress>;

/** Settings that a QEMU process has from its start. Absent ones are as in the record. */
const partsOfRun = z.object({
  nics: z.array(instanceNic),
  disks: z.array(instanceDisk),
  beparams: beParameters.optional(),
  hvparams: hvParameters.optional(),
  communication: z.boolean().optional(),
  seedDisk: z.boolean().optional(),
  dialects: z.array(dialect).min(1).optional(),
  bootEnv: bootEnvName.nullable().optional(),
});

/** The data source that a stock cloud-init uses, in its own name, and why. */
const cloudInitSource = z.object({ datasource: z.string().nullable(), reason: z.string() });

/** What the store keeps of an instance. Secret values are nowhere in it, only their names. */
export const instanceRecord = z.object({
  schema: z.literal(1),
  name: instanceName,
  uuid,
  instanceId: uuid,
  primaryNode: instanceName,
  osType: z.string().nullable(),
  osImage: z.string().nullable(),
  osImageChecksum: z.string().nullable(),
  osImageGrow: z.boolean(),
  /**
   * What the operator says that the image is; null where its content says it. Absent in older
   * records.
   */
  osImageFormat: imageFormat.nullable().default(null),
  personalizationPackage: z.string().nullable(),
  /** Absent in older records. */
  personalizationChecksum: z.string().nullable().default(null),
  safeInstall: z.boolean(),
  installParameters: hvParameters.partial(),
  ...storedSettings('installation'),
  /** What its installations use; null where OS or cluster say it. Absent in older records. */
  appliance: z.string().nullable().default(null),
  /** Seconds, 0 for no limit; null where the cluster's counts. Absent in older records. */
  installTimeoutS: installTimeout.nullable().default(null),
  /** In the order in which they are run. Absent in records that are older than hooks. */
  hooks: hookFiles.default([]),
  osParameters: z.record(z.string(), z.string()),
  osParametersPrivate: z.record(z.string(), z.string()),
  secretNames: z.array(z.string()),
  /** Sets of parameters below its own, the first above the others. Absent in older records. */
  profiles: profileNames.default([]),
  /**
   * The boot environment that it boots into through its channel; `local`: from its disk. Absent in
   * older records.
   */
  bootEnv: bootEnvName.nullable().default(null),
  /**
   * Of these secrets the last install was given; whether the package needed a password is
   * remembered, the password is not.
   */
  packageNeedsPassword: z.boolean(),
  communication: z.boolean(),
  channel: instanceChannel,
  userData: z.string().nullable(),
  vendorData: z.string().nullable(),
  networkConfig: z.string().nullable(),
  sshKeys: z.array(z.string()),
  metadata: z.record(z.string(), z.string()),
  tags: z.array(z.string()),
  ...storedSettings('metadata'),
  diskTemplate,
  disks: z.array(instanceDisk),
  /** Oldest first. Absent in older records. */
  snapshots: z.array(instanceSnapshot).default([]),
  /** Of the last restoration of a snapshot: whose disks these are. Absent in older records. */
  restoreId: uuid.nullable().default(null),
  nics: z.array(instanceNic),
  /**
   * Settings of the running QEMU process, where the record was changed since its start. The next
   * start removes them. Absent in older records.
   */
  partsOfRun: partsOfRun.nullable().default(null),
  beparams: beParameters,
  hvparams: hvParameters,
  adminState,
  /**
   * The job that has stopped it and starts it again at its end: should the daemon be killed
   * meanwhile, the next one does. Absent in older records.
   */
  stoppedByJob: z.number().int().nullable().default(null),
  /** `created`: has disks, nothing installed (`--no-install`). */
  installState: z.enum(['created', 'installing', 'installed', 'failed']),
  install: installRecord.nullable(),
  /** Of the last run whose guest said something. Absent in older records. */
  guestReport: guestReport.nullable().default(null),
  /** Its own run lists. Absent in older records. */
  runLists: runLists.nullable().default(null),
  /** Of the last run in which it had run lists. Absent in older records. */
  lifecycle: lifecycleRecord.nullable().default(null),
  /** What ssh checks its guest against. Absent in older records. */
  hostKeys: knownHostKeys.nullable().default(null),
  /** Absent in older records. */
  autostart: autostart.default(DEFAULT_AUTOSTART),
  /**
   * While a reinstallation runs, as long as the old disks are whole: what the instance is again
   * should it fail. Absent in older records.
   */
  beforeReinstall: formerState.nullable().default(null),
  createdAtMs: z.number(),
  /**
   * The last job's number when it got its name: earlier jobs meant another instance by it. Absent
   * in older records.
   */
  namedAfterJob: z.number().int().optional(),
  modifiedAtMs: z.number(),
  serialNo: z.number().int(),
});
export type InstanceRecord = z.infer<typeof instanceRecord>;

/** What a reinstallation may change of an instance, in the moment in which it has succeeded. */
export const installChanges = instanceRecord.pick({
  instanceId: true,
  osType: true,
  osImage: true,
  osImageChecksum: true,
  osImageGrow: true,
  osImageFormat: true,
  personalizationPackage: true,
  personalizationChecksum: true,
  packageNeedsPassword: true,
  safeInstall: true,
  installParameters: true,
  ...byKey<'installation', Record<PlainKey<'installation'>, true>>('installation', () => true),
  appliance: true,
  hooks: true,
  osParameters: true,
  osParametersPrivate: true,
  secretNames: true,
  profiles: true,
  bootEnv: true,
});
export type InstallChanges = z.infer<typeof installChanges>;

/** Ganeti's words for what `gnt-instance list` shows, and ours for installations. */
export const instanceStatus = z.enum([
  'running',
  /** Its process runs, but the guest was stopped at a write that failed. */
  'paused',
  'ADMIN_down',
  'ERROR_down',
  'ERROR_up',
  'installing',
  'install_failed',
  /** Its node does not answer. */
  'ERROR_nodedown',
  /** Its node answers, and not with what was asked for. */
  'ERROR_nodefails',
  /** Its node is marked offline: nobody asks it. */
  'ERROR_nodeoffline',
]);
export type InstanceStatus = z.infer<typeof instanceStatus>;

/** What a guest that runs is given to boot by from its channel. */
export const runningBootEnv = z.object({
  name: z.string(),
  /** Why it cannot be rendered as things are now: it stays as it was given. */
  failure: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** Files that are not served any more: they changed, and need secrets that nobody has. */
  lost: z.array(z.object({ path: z.string(), secrets: z.array(z.string()) })),
});
export type RunningBootEnv = z.infer<typeof runningBootEnv>;

/**
 * Names of the secrets that a running guest cannot read, since gnt-metad lost their values. A node
 * of an earlier release does not say.
 */
const lostSecrets = z.array(z.string()).optional();

/**
 * GET /v1/instances and /v1/instances/{name}: the record with private values replaced, and what is
 * known of the running machine.
 */
export const instanceInfo = instanceRecord
  .omit({
    osParametersPrivate: true,
    userData: true,
    vendorData: true,
    networkConfig: true,
    hooks: true,
    hostKeys: true,
    runLists: true,
    lifecycle: true,
    namedAfterJob: true,
  })
  .extend({
    osParametersPrivate: z.record(z.string(), z.literal('<redacted>')),
    /** Values in force, with the cluster's and the OS definition's defaults. */
    osParametersEffective: z.record(
      z.string(),
      z.object({ value: z.string(), visibility, source: z.string() }),
    ),
    /** A node of an earlier release does not say. */
    applianceInForce: applianceInForce.optional(),
    /** Names of the instance's own hook documents. */
    hookNames: z.array(z.string()),
    /** Its own scripts by name, in their order. A node of an earlier release does not say. */
    runListNames: z.record(runListName, z.array(z.string())).optional(),
    lifecycle: lifecycleInfo.nullish(),
    hasUserData: z.boolean(),
    hasVendorData: z.boolean(),
    hasNetworkConfig: z.boolean(),
    status: instanceStatus,
    running: z
      .object({
        pid: z.number().int(),
        accelerator: z.enum(['kvm', 'tcg']),
        startedAtMs: z.number(),
        tap: z.string().nullable(),
        /** The guest said that it is up. */
        readyAtMs: z.number().nullable(),
        /** Why the guest stands still; a node of an earlier release does not say. */
        halt: z
          .object({ reason: z.enum(['disk-full', 'disk-error']), sinceMs: z.number() })
          .nullish(),
        /** A node of an earlier release does not say. */
        bootEnv: runningBootEnv.nullish(),
        lostSecrets,
      })
      .nullable(),
    /** What the guest's cloud-init says of the present boot. */
    boot: bootReport.nullable(),
    /** A node of an earlier release does not say. */
    ssh: sshInfo.default({ user: null, hostKeys: [], saidHostKeys: [] }),
    /** Whether a start attaches a seed disk. */
    seedDisk: z.boolean(),
    cloudInit: cloudInitSource,
    /** Settings of the running QEMU process that differ from those after the next start. */
    partsOfRun: partsOfRun
      .extend({ cloudInit: cloudInitSource.optional() })
      .nullable()
      .default(null),
    /** One sentence for a person: what state it is in and what to do about it. */
    explanation: z.string(),
  });
export type InstanceInfo = z.infer<typeof instanceInfo>;

/** A machine that runs, as its node tells the others. */
export const runningMachine = z.object({
  uuid,
  pid: z.number().int(),
  accelerator: z.enum(['kvm', 'tcg']),
  startedAtMs: z.number(),
  tap: z.string().nullable(),
  halt: z.object({ reason: z.enum(['disk-full', 'disk-error']), sinceMs: z.number() }).nullish(),
  lostSecrets,
});
export type RunningMachine = z.infer<typeof runningMachine>;

/** A line of GET /v1/machines/events. */
export const machineChanges = z.object({
  /** The first line tells all that run, the others what changed. */
  isFirst: z.boolean(),
  running: z.array(runningMachine),
  ended: z.array(uuid),
  /** What its host has, with the first line and when that changes by more than a trifle. */
  room: hostRoom.optional(),
});
export type MachineChanges = z.infer<typeof machineChanges>;

/** A line of GET /v1/instance-summaries: what each node knows of all instances without asking. */
export const instanceSummary = instanceInfo
  .pick({
    ...{ uuid: true, name: true, primaryNode: true, osType: true, adminState: true },
    ...{ installState: true, tags: true, beparams: true, diskTemplate: true, status: true },
    ...{ communication: true, serialNo: true, createdAtMs: true, modifiedAtMs: true },
  })
  .extend({ running: runningMachine.omit({ uuid: true }).nullable() });
export type InstanceSummary = z.infer<typeof instanceSummary>;
/** What a line may be asked for alone. */
export const instanceSummaryField = instanceSummary.keyof();
export type InstanceSummaryField = z.infer<typeof instanceSummaryField>;
