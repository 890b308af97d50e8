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
import { provenance } from './provenance.ts';
import { nicNetwork } from './static-network.ts';

const stageTiming = z.object({ stage: installStage, durationMs: z.number(), summary: z.string() });
export type StageTiming = z.infer<typeof stageTiming>;

/** Slots for NICs and disks that are added to a running instance. */
export const MAX_PORTS = 8;

/** Result of the last installation. */
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
  /** Absent without a successful installation, for imports, and in older records. */
  provenance: provenance.optional(),
});
export type InstallRecord = z.infer<typeof installRecord>;

const adminState = z.enum(['up', 'down']);

/** State before a reinstallation that has not changed the disks yet. */
const formerState = z.object({
  adminState,
  installState: z.enum(['created', 'installed', 'failed']),
  install: installRecord.nullable(),
});

/**
 * Slot of a part that was added to a running instance. It stays, so that device names in the guest
 * stay. Absent: the slot follows from the part's number.
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
  /** Network of the cluster. Its bridge may differ between nodes. */
  networkName: networkName.optional(),
  /** Null: the guest uses DHCP. */
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
  /** Template `plain`: volume group of the volume. */
  vg: volumeGroupName.optional(),
  /** Template `plain`: thin pool of the volume. Absent: it has extents of its own. */
  pool: volumeGroupName.optional(),
  /** Template `zfs`: dataset of the volume. */
  dataset: zfsDataset.optional(),
});
/** Each snapshot keeps the blocks that were written since. */
export const MAX_SNAPSHOTS = 64;
/** The disks at one point in time, and the properties that depend on them. */
export const instanceSnapshot = z.object({
  uuid,
  name: snapshotName,
  takenAtMs: z.number(),
  /** True: the guest's memory is missing, as after a power cut. */
  wasRunning: z.boolean(),
  /** The installation on these disks. */
  instanceId: uuid,
  installState: z.enum(['created', 'installed']),
  disks: z.array(instanceDisk),
  /** Host keys that ssh accepted at that time. */
  hostKeys: knownHostKeys.nullable().default(null),
});
export type InstanceSnapshot = z.infer<typeof instanceSnapshot>;
export type InstanceNic = z.infer<typeof instanceNic>;
export type InstanceDisk = z.infer<typeof instanceDisk>;

/** The channel keeps its address and MAC for the instance's life, even while it is off. */
export const instanceChannel = z.object({ ip: channelIp, mac: macAddress, uuid });

/** Reports of the guest in one run, and cloud-init's errors. */
const guestReport = z.object({
  /** Start of the QEMU process of the run. Reports of other runs are ignored. */
  runStartedAtMs: z.number(),
  /** Time of the first ready report. */
  readyAtMs: z.number().nullable(),
  /** Sender of the ready report, such as `cloud-init`. */
  readySource: z.string().max(64).nullable(),
  /** Progress of cloud-init; null without reports. Absent in older records. */
  boot: bootReport.nullable().default(null),
  /** Keys of the guest's sshd. Absent in older records. */
  hostKeys: hostKeys.default([]),
  /** The first reported keys of this run. Absent in older records. */
  firstHostKeys: hostKeys.default([]),
  loginUser: loginUser.nullable().default(null),
  /**
   * Events of metad up to this sequence belong to a boot that a reset ended. Absent in older
   * records.
   */
  afterSequence: z.number().int().default(0),
});
export type GuestReport = z.infer<typeof guestReport>;

/** A line of a guest's boot progress. */
export const guestProgress = z.object({
  isRunning: z.boolean(),
  /** Null without run lists. Absent from nodes of earlier releases. */
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

/** The datasource of a stock cloud-init, by its own name, and the reason for the choice. */
const cloudInitSource = z.object({ datasource: z.string().nullable(), reason: z.string() });

/** An instance in the store. It contains names of secrets, never their values. */
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
  /** Format that the operator gave; null: detected from the content. Absent in older records. */
  osImageFormat: imageFormat.nullable().default(null),
  personalizationPackage: z.string().nullable(),
  /** Absent in older records. */
  personalizationChecksum: z.string().nullable().default(null),
  safeInstall: z.boolean(),
  installParameters: hvParameters.partial(),
  ...storedSettings('installation'),
  /**
   * Appliance of its installations; null: the OS definition's or the cluster's. Absent in older
   * records.
   */
  appliance: z.string().nullable().default(null),
  /** Seconds, 0 for no limit; null: the cluster's. Absent in older records. */
  installTimeoutS: installTimeout.nullable().default(null),
  /** In the order of execution. Absent in older records. */
  hooks: hookFiles.default([]),
  osParameters: z.record(z.string(), z.string()),
  osParametersPrivate: z.record(z.string(), z.string()),
  secretNames: z.array(z.string()),
  /** Parameters of profiles rank below its own; the first profile wins. Absent in older records. */
  profiles: profileNames.default([]),
  /**
   * Boot environment that it boots through its channel; `local`: from its disk. Absent in older
   * records.
   */
  bootEnv: bootEnvName.nullable().default(null),
  /** Whether the last installation got a password for the package. The password is not stored. */
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
  /** Identifies the last restoration of a snapshot. Absent in older records. */
  restoreId: uuid.nullable().default(null),
  nics: z.array(instanceNic),
  /**
   * Settings of the running QEMU process that differ from the record since its start. The next
   * start removes them. Absent in older records.
   */
  partsOfRun: partsOfRun.nullable().default(null),
  beparams: beParameters,
  hvparams: hvParameters,
  adminState,
  /**
   * The job that stopped the instance and restarts it at its end. After a crash of the daemon, the
   * next daemon restarts it. Absent in older records.
   */
  stoppedByJob: z.number().int().nullable().default(null),
  /** `created`: has disks, nothing installed (`--no-install`). */
  installState: z.enum(['created', 'installing', 'installed', 'failed']),
  install: installRecord.nullable(),
  /** From the last run with a report. Absent in older records. */
  guestReport: guestReport.nullable().default(null),
  /** Its own run lists. Absent in older records. */
  runLists: runLists.nullable().default(null),
  /** From the last run with run lists. Absent in older records. */
  lifecycle: lifecycleRecord.nullable().default(null),
  /** Host keys that ssh accepts. Absent in older records. */
  hostKeys: knownHostKeys.nullable().default(null),
  /** Absent in older records. */
  autostart: autostart.default(DEFAULT_AUTOSTART),
  /**
   * State to restore if a reinstallation fails before it changes the old disks. Absent in older
   * records.
   */
  beforeReinstall: formerState.nullable().default(null),
  createdAtMs: z.number(),
  /**
   * Number of the last job before it got its name. Earlier jobs with this name belong to another
   * instance. Absent in older records.
   */
  namedAfterJob: z.number().int().optional(),
  modifiedAtMs: z.number(),
  serialNo: z.number().int(),
});
export type InstanceRecord = z.infer<typeof instanceRecord>;

/** Fields that a successful reinstallation changes. */
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

/** Ganeti's states in `gnt-instance list`, and ours for installations. */
export const instanceStatus = z.enum([
  'running',
  /** The QEMU process runs, but a failed write stopped the guest. */
  'paused',
  'ADMIN_down',
  'ERROR_down',
  'ERROR_up',
  'installing',
  'install_failed',
  /** Its node does not answer. */
  'ERROR_nodedown',
  /** Its node answers with an error. */
  'ERROR_nodefails',
  /** Its node is marked offline and is not asked. */
  'ERROR_nodeoffline',
]);
export type InstanceStatus = z.infer<typeof instanceStatus>;

/** The boot environment of a running guest's channel. */
export const runningBootEnv = z.object({
  name: z.string(),
  /** Why it cannot be rendered now. The files stay as they were rendered. */
  failure: z.object({ code: z.string(), message: z.string() }).nullable(),
  /** Files that are no longer served, because they changed and need lost secrets. */
  lost: z.array(z.object({ path: z.string(), secrets: z.array(z.string()) })),
});
export type RunningBootEnv = z.infer<typeof runningBootEnv>;

/** Secrets whose values gnt-metad has lost. Absent from nodes of earlier releases. */
const lostSecrets = z.array(z.string()).optional();

/**
 * GET /v1/instances and /v1/instances/{name}: the record with private values replaced, and the
 * state of the QEMU process.
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
    /** Effective values, with defaults of the cluster and the OS definition. */
    osParametersEffective: z.record(
      z.string(),
      z.object({ value: z.string(), visibility, source: z.string() }),
    ),
    /** Absent from nodes of earlier releases. */
    applianceInForce: applianceInForce.optional(),
    /** Names of the instance's own hook documents. */
    hookNames: z.array(z.string()),
    /** Names of its own scripts in their order. Absent from nodes of earlier releases. */
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
        /** Time of the guest's ready report. */
        readyAtMs: z.number().nullable(),
        /** Why the guest is paused. Absent from nodes of earlier releases. */
        halt: z
          .object({ reason: z.enum(['disk-full', 'disk-error']), sinceMs: z.number() })
          .nullish(),
        /** Absent from nodes of earlier releases. */
        bootEnv: runningBootEnv.nullish(),
        lostSecrets,
      })
      .nullable(),
    /** cloud-init's report of the present boot. */
    boot: bootReport.nullable(),
    /** Absent from nodes of earlier releases. */
    ssh: sshInfo.default({ user: null, hostKeys: [], saidHostKeys: [] }),
    /** Whether a start attaches a seed disk. */
    seedDisk: z.boolean(),
    cloudInit: cloudInitSource,
    /** Settings of the running QEMU process that differ from those after the next start. */
    partsOfRun: partsOfRun
      .extend({ cloudInit: cloudInitSource.optional() })
      .nullable()
      .default(null),
    /** One sentence for the operator: the state, and a remedy if necessary. */
    explanation: z.string(),
  });
export type InstanceInfo = z.infer<typeof instanceInfo>;

/** A running instance, as its node reports it to other nodes. */
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

export const machineChanges = z.object({
  /** The first line has all running instances, later lines only changes. */
  isFirst: z.boolean(),
  running: z.array(runningMachine),
  ended: z.array(uuid),
  /** Resources of the node, in the first line and after each notable change. */
  room: hostRoom.optional(),
});
export type MachineChanges = z.infer<typeof machineChanges>;

/**
 * A line of GET /v1/instance-summaries: the part that each node knows of all instances without a
 * request to others.
 */
export const instanceSummary = instanceInfo
  .pick({
    ...{ uuid: true, name: true, primaryNode: true, osType: true, adminState: true },
    ...{ installState: true, tags: true, beparams: true, diskTemplate: true, status: true },
    ...{ communication: true, serialNo: true, createdAtMs: true, modifiedAtMs: true },
  })
  .extend({ running: runningMachine.omit({ uuid: true }).nullable() });
export type InstanceSummary = z.infer<typeof instanceSummary>;
/** Fields that a client can select. */
export const instanceSummaryField = instanceSummary.keyof();
export type InstanceSummaryField = z.infer<typeof instanceSummaryField>;
