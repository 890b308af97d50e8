import { z } from 'zod';
import { launchDefaults, lowSpacePercent, serviceProtocol } from './cluster-settings.ts';
import { volumePlace, zfsDataset } from './disk-template.ts';
import { guestNetwork } from './guest-reach.ts';
import { hookBook } from './hook-book.ts';
import { imageKey } from './image-keys.ts';
import { NO_FLAGS, nodeFlags } from './node-flags.ts';
import { osParameterName, uuid, visibility } from './primitives.ts';

/**
 * How noded's API (HTTP and JSON on `run/gnt/noded.sock`, mode 0600, root) tells every failure,
 * with a status of 4xx or 5xx.
 */
export const apiError = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().nullable(),
  details: z.record(z.string(), z.unknown()),
});
export type ApiError = z.infer<typeof apiError>;

export const jobSubmitted = z.object({ id: z.number().int().positive() });
/** A job would be taken: its check and prerequisites passed. */
export const dryRunAccepted = z.object({
  ok: z.literal(true),
  /** Hooks in the order in which an installation that has some would run them. */
  hooks: hookBook.optional(),
});
export type DryRunAccepted = z.infer<typeof dryRunAccepted>;

/** A disk of an instance as the host sees it. */
export const activeDisk = z.object({
  index: z.number().int().nonnegative(),
  name: z.string().nullable(),
  sizeBytes: z.number().int().positive(),
  path: z.string(),
});
export type ActiveDisk = z.infer<typeof activeDisk>;

/** An export of an instance on this node. */
export const exportInfo = z.object({
  name: z.string(),
  path: z.string(),
  createdAtMs: z.number(),
  osType: z.string().nullable(),
  /** The bytes of all dumps together. */
  sizeBytes: z.number().nonnegative(),
  /** Why it cannot be imported. */
  problem: z.string().nullable(),
});
export type ExportInfo = z.infer<typeof exportInfo>;

/**
 * A machine that runs without a record of the cluster: it was lost, or is another node's by now.
 */
const orphan = z.object({
  uuid,
  /** As the machine was called when it was started; its UUID when that is not known. */
  name: z.string(),
  pid: z.number().int(),
  tap: z.string().nullable(),
});
export type Orphan = z.infer<typeof orphan>;
/** GET /v1/orphans. */
export const listedOrphan = orphan.extend({ node: z.string() });
export type ListedOrphan = z.infer<typeof listedOrphan>;

export const nodeInfo = z.object({
  name: z.string(),
  version: z.string(),
  root: z.string(),
  pid: z.number().int(),
  startedAtMs: z.number(),
  metad: z.object({ pid: z.number().int().nullable(), restarts: z.number().int() }),
  networkNamespace: z.string(),
  cpus: z.number().int(),
  memoryMiB: z.number().int(),
  memoryFreeMiB: z.number().int(),
  diskFreeBytes: z.number(),
  instances: z.number().int(),
  instancesRunning: z.number().int(),
  /** Set when it was removed from its cluster while it was away. */
  removedAtMs: z.number().nullable().default(null),
  orphans: z.array(orphan).default([]),
  appliance: z.object({ state: z.enum(['intact', 'missing', 'corrupt']), detail: z.string() }),
  /** A node of an earlier release does not say. */
  flags: nodeFlags.default(NO_FLAGS),
});
export type NodeInfo = z.infer<typeof nodeInfo>;

/** A node of a list: what it says of itself, or why it says nothing. */
export const listedNode = z.union([
  nodeInfo,
  z.strictObject({
    name: z.string(),
    silent: z.string(),
    instances: z.number().int(),
    flags: nodeFlags.default(NO_FLAGS),
  }),
]);
export type ListedNode = z.infer<typeof listedNode>;

export const doctorFinding = z.object({
  check: z.string(),
  level: z.enum(['ok', 'warning', 'error']),
  message: z.string(),
  /** What to do, when there is something to do. */
  hint: z.string().nullable(),
});
export const doctorReport = z.object({
  /** Installs can work: no finding is an error. */
  ok: z.boolean(),
  findings: z.array(doctorFinding),
});
export type DoctorFinding = z.infer<typeof doctorFinding>;
export type DoctorReport = z.infer<typeof doctorReport>;

/**
 * Where it goes: TCP or UDP, which any local process can send to too, or a unix socket, which its
 * mode protects.
 */
export const exposedService = z.union([
  z.object({
    port: z.number().int(),
    host: z.string(),
    hostPort: z.number().int(),
    protocol: serviceProtocol.optional(),
  }),
  z.object({
    port: z.number().int(),
    socketPath: z.string(),
    protocol: serviceProtocol.optional(),
  }),
]);

export const clusterRecord = z.object({
  schema: z.literal(1),
  name: z.string(),
  uuid: z.string(),
  createdAtMs: z.number(),
  installTimeoutS: z.number().int().nonnegative(),
  hostScripts: z.boolean(),
  /** The imported appliance that installations use. Absent: the built one. */
  appliance: z.string().optional(),
  /** OS, with its variant, of new instances that name nothing to install. Absent: none. */
  defaultOs: z.string().optional(),
  launchDefaults: launchDefaults.optional(),
  exposeServices: z.record(z.string(), exposedService),
  /** URLs of package mirrors that an instance may read from while it is installed, by name. */
  packageMirrors: z.record(z.string(), z.string()).optional(),
  /** Whose signatures of images and packages count, by name. None: they need no signature. */
  imageKeys: z.record(z.string(), imageKey).optional(),
  /** What `downloadLimitsOf` completes. */
  /** Folders of the nodes below which the remote API may name files. */
  remoteFolders: z.array(z.string()).optional(),
  /** What, beside the internet, URLs of the remote API may lead to. */
  remoteHosts: z.array(z.string()).optional(),
  /** Every NIC has `reach=public`. */
  confineGuests: z.boolean().optional(),
  /** Private networks that NICs with `reach=public` reach. */
  guestNetworks: z.array(guestNetwork).optional(),
  /** Where disks of the template `sharedfile` are, on every node. Absent: there are none. */
  sharedFileStorageDir: z.string().optional(),
  /** Where new disks of the template `plain` are made. Absent: nowhere. */
  vgName: volumePlace.optional(),
  /** The dataset in which new disks of the template `zfs` are made. Absent: nowhere. */
  zfsPool: zfsDataset.optional(),
  /** Where less of a file system is free, jobs and the doctor warn. Absent: the usual. */
  lowSpacePercent: lowSpacePercent.optional(),
  maxImageBytes: z.number().int().positive().optional(),
  downloadTimeoutS: z.number().int().nonnegative().optional(),
  minDownloadRate: z.number().int().nonnegative().optional(),
  /** PEM certificates that servers of images and packages are trusted by besides the system's. */
  imageCa: z.string().optional(),
  tags: z.array(z.string()).optional(),
});
export type ClusterRecord = z.infer<typeof clusterRecord>;
export const clusterInfo = clusterRecord.extend({
  store: z.string(),
  nodes: z.array(z.string()),
  instances: z.number().int(),
});
export type ClusterInfo = z.infer<typeof clusterInfo>;

/** POST /v1/cluster/renew-crypto. */
export const renewCrypto = z.strictObject({
  /** Nodes that do not answer, and are left behind. */
  skip: z.array(z.string().max(253)).max(1000).default([]),
});
export const cryptoRenewed = z.object({
  /** Those that have the new key. */
  nodes: z.array(z.string()),
  skipped: z.array(z.string()),
});
export type CryptoRenewed = z.infer<typeof cryptoRenewed>;

/** POST /v1/cluster/join-tokens. */
export const makeJoinToken = z.strictObject({
  /** Seconds: long enough to carry a word over, short enough to be forgotten. */
  lifetimeS: z.number().int().min(10).max(86_400),
});
export const joinTokenMade = z.object({
  /** A secret, as good as the cluster's key until then. */
  token: z.string(),
  expiresAtMs: z.number(),
  /** Where the store is, without a password. */
  store: z.string(),
});
export type JoinTokenMade = z.infer<typeof joinTokenMade>;

/** Steps of an exchange of the key, in their order; one node seals the records anew. */
export const cryptoSteps = ['learn', 'seal', 'reseal', 'forget'] as const;
/** GET /v1/cluster/renew-crypto: what the renewal that this node carries out has done so far. */
export const cryptoProgress = z.object({
  /**
   * Renewals that this daemon has carried out, or carries out; what was done is of the last one.
   */
  renewals: z.number(),
  done: z.array(z.object({ step: z.enum(cryptoSteps), node: z.string() })),
});
export type CryptoProgress = z.infer<typeof cryptoProgress>;

/** Length of a key of nacl.secretbox. */
const CLUSTER_KEY_BYTES = 32;
const clusterKey = z
  .base64()
  .refine((text) => Buffer.from(text, 'base64').length === CLUSTER_KEY_BYTES, 'not a key');

/** A step that the node which renews the cluster key has another node take. */
export const keyStep = z.discriminatedUnion('step', [
  z.strictObject({ step: z.literal('learn'), key: clusterKey }),
  z.strictObject({ step: z.literal('seal'), key: clusterKey }),
  z.strictObject({ step: z.literal('forget'), fingerprint: z.string().regex(/^[0-9a-f]{64}$/) }),
]);
export type KeyStep = z.infer<typeof keyStep>;

/**
 * What the administrator set for an OS definition, by OS name or by OS+variant; the definition need
 * not exist.
 */
export const osSafeInstall = z.enum(['optional', 'required']);

export const osSettings = z.object({
  schema: z.literal(1),
  name: z.string(),
  trusted: z.boolean(),
  /**
   * What was trusted, and when. Absent in records that are older than trust in contents: these
   * trust a name, which counts for nothing.
   */
  trust: z.object({ digest: z.string(), atMs: z.number() }).optional(),
  /**
   * An administrator gave `--trusted no`: of a definition with a create script for the node and
   * one for the appliance, the latter runs alone. Absent in older records.
   */
  isDistrusted: z.boolean().optional(),
  hidden: z.boolean(),
  blacklisted: z.boolean(),
  /** `required`: its scripts run in the appliance, all of them. Absent in older records. */
  safeInstall: osSafeInstall.default('optional'),
  /** What installations with it use. Absent: the cluster's. */
  appliance: z.string().optional(),
  osParameters: z.record(osParameterName, z.string()),
  osParametersPrivate: z.record(osParameterName, z.string()),
});
export type OsSettings = z.infer<typeof osSettings>;

const osTrust = z.object({
  /** `changed`: it is not what was trusted. `by-name`: its name was trusted, and no content. */
  state: z.enum(['trusted', 'untrusted', 'changed', 'by-name']),
  /** Digest of the definition as it is now; null when it cannot be taken. */
  digest: z.string().nullable(),
  trustedAtMs: z.number().nullable(),
});
export type OsTrust = z.infer<typeof osTrust>;

/** Defaults by name; private values are `<redacted>`. */
const osDefaults = z.record(z.string(), z.object({ value: z.string(), visibility }));

/** What was set for a variant alone. */
const osVariantInfo = z.object({
  trust: osTrust,
  hidden: z.boolean(),
  blacklisted: z.boolean(),
  safeInstall: osSafeInstall.default('optional'),
  appliance: z.string().optional(),
  defaults: osDefaults,
});
export type OsVariantInfo = z.infer<typeof osVariantInfo>;

export const osInfo = z.object({
  name: z.string(),
  path: z.string().nullable(),
  valid: z.boolean(),
  /** Why it is not valid, in Ganeti's words. */
  problem: z.string().nullable(),
  apiVersions: z.array(z.number().int()),
  variants: z.array(z.string()),
  parameters: z.array(z.object({ name: z.string(), description: z.string() })),
  /** Scripts by where they run. */
  hostScripts: z.array(z.string()),
  applianceScripts: z.array(z.string()),
  /** The definition is, as it is now on this node. */
  trusted: z.boolean(),
  trust: osTrust,
  hidden: z.boolean(),
  blacklisted: z.boolean(),
  safeInstall: osSafeInstall.default('optional'),
  appliance: z.string().optional(),
  defaults: osDefaults,
  /** Of the variants for which something was set, by variant. */
  variantSettings: z.record(z.string(), osVariantInfo),
});
export type OsInfo = z.infer<typeof osInfo>;

/** GET /v1/os-of-nodes: what each node has, or why it says nothing. */
export const nodeOs = z.union([
  z.strictObject({ node: z.string(), operatingSystems: osInfo.array() }),
  z.strictObject({ node: z.string(), silent: z.string() }),
]);
export type NodeOs = z.infer<typeof nodeOs>;
