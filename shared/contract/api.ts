import { z } from 'zod';
import { dataRate, launchDefaults, lowSpacePercent, serviceProtocol } from './cluster-settings.ts';
import { dataLinks } from './data-links.ts';
import { volumePlace, zfsDataset } from './disk-template.ts';
import { guestNetwork } from './guest-reach.ts';
import { hookBook } from './hook-book.ts';
import { identitySettings } from './identity.ts';
import {
  MAX_JOIN_TOKEN_S,
  MAX_KEY_OVERLAP_S,
  MAX_PORT,
  MIN_JOIN_TOKEN_S,
} from './number-limits.ts';
import { relayName, relaySettings } from './relay.ts';
import { imageKey } from './image-keys.ts';
import { NO_FLAGS, nodeFlags } from './node-flags.ts';
import { osParameterName, uuid, visibility } from './primitives.ts';

/**
 * Body of each answer of noded's API with a status of 4xx or 5xx. The API is HTTP and JSON on
 * `run/gnt/noded.sock`, mode 0600, root.
 */
export const apiError = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().nullable(),
  details: z.record(z.string(), z.unknown()),
});
export type ApiError = z.infer<typeof apiError>;

export const jobSubmitted = z.object({ id: z.number().int().positive() });
/** The opcode's check and prerequisites passed. */
export const dryRunAccepted = z.object({
  ok: z.literal(true),
  /** Hooks of the installation in their order. */
  hooks: hookBook.optional(),
});
export type DryRunAccepted = z.infer<typeof dryRunAccepted>;

export const activeDisk = z.object({
  index: z.number().int().nonnegative(),
  name: z.string().nullable(),
  sizeBytes: z.number().int().positive(),
  path: z.string(),
});
export type ActiveDisk = z.infer<typeof activeDisk>;

export const exportInfo = z.object({
  name: z.string(),
  path: z.string(),
  createdAtMs: z.number(),
  osType: z.string().nullable(),
  /** Sum of all dumps. */
  sizeBytes: z.number().nonnegative(),
  /** Why it cannot be imported. */
  problem: z.string().nullable(),
  /** Name of the exported instance; null if the export cannot be read. */
  instance: z.string().nullable(),
  /** Settings in an export of Ganeti that an import does not keep. */
  losses: z.array(z.string()),
});
export type ExportInfo = z.infer<typeof exportInfo>;

/** A running QEMU process without a record: the record was lost or names another node. */
const orphan = z.object({
  uuid,
  /** Name at the start of the process; its UUID if unknown. */
  name: z.string(),
  pid: z.number().int(),
  tap: z.string().nullable(),
});
export type Orphan = z.infer<typeof orphan>;
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
  /** Size of the file system with the disks. Null in answers of earlier releases. */
  diskBytes: z.number().nullable().default(null),
  diskFreeBytes: z.number(),
  instances: z.number().int(),
  instancesRunning: z.number().int(),
  /** Set when the node was removed from its cluster while it was down. */
  removedAtMs: z.number().nullable().default(null),
  orphans: z.array(orphan).default([]),
  appliance: z.object({ state: z.enum(['intact', 'missing', 'corrupt']), detail: z.string() }),
  /** Null without a common store, and in answers of earlier releases. */
  dataLinks: dataLinks.nullable().default(null),
  /** Absent in answers of earlier releases. */
  flags: nodeFlags.default(NO_FLAGS),
});
export type NodeInfo = z.infer<typeof nodeInfo>;

/** A node's own description, or why it does not answer. */
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
  hint: z.string().nullable(),
});
export const doctorReport = z.object({
  /** True if no finding is an error: installations can work. */
  ok: z.boolean(),
  findings: z.array(doctorFinding),
});
export type DoctorFinding = z.infer<typeof doctorFinding>;
export type DoctorReport = z.infer<typeof doctorReport>;

/** GET /v1/doctor-of-nodes: the report of a node, or why there is none. */
export const nodeReport = z.union([
  z.strictObject({ node: z.string(), report: doctorReport }),
  z.strictObject({ node: z.string(), silent: z.string(), isOffline: z.boolean() }),
]);
export type NodeReport = z.infer<typeof nodeReport>;

/**
 * Target of a service: TCP or UDP, which any local process can send to, or a unix socket, which its
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
  /** OS, with its variant, of new instances without an OS or image. Absent: none. */
  defaultOs: z.string().optional(),
  launchDefaults: launchDefaults.optional(),
  exposeServices: z.record(z.string(), exposedService),
  /** URLs of package mirrors that an instance may read during its installation, by name. */
  packageMirrors: z.record(z.string(), z.string()).optional(),
  /** Trusted signers of images and packages, by name. None: signatures are not required. */
  imageKeys: z.record(z.string(), imageKey).optional(),
  /** Folders of the nodes below which the remote API may name files. */
  remoteFolders: z.array(z.string()).optional(),
  /** Targets outside the internet that URLs of the remote API may have. */
  remoteHosts: z.array(z.string()).optional(),
  /** Every NIC has `reach=public`. */
  confineGuests: z.boolean().optional(),
  /** Private networks that NICs with `reach=public` reach. */
  guestNetworks: z.array(guestNetwork).optional(),
  /** Folder of disks of the template `sharedfile`, on every node. Absent: there are none. */
  sharedFileStorageDir: z.string().optional(),
  /** Volume group of new disks of the template `plain`. Absent: none can be created. */
  vgName: volumePlace.optional(),
  /** Dataset of new disks of the template `zfs`. Absent: none can be created. */
  zfsPool: zfsDataset.optional(),
  /** Jobs and the doctor warn below this share of free space. Absent: DEFAULT_LOW_SPACE_PERCENT. */
  lowSpacePercent: lowSpacePercent.optional(),
  /** Bytes per second that each move or migration sends at most. Absent or 0: no limit. */
  dataRate: dataRate.optional(),
  maxImageBytes: z.number().int().positive().optional(),
  downloadTimeoutS: z.number().int().nonnegative().optional(),
  minDownloadRate: z.number().int().nonnegative().optional(),
  /**
   * PEM certificates that are trusted for image and package servers, in addition to the system's.
   */
  imageCa: z.string().optional(),
  /** Signed identities of instances. Absent: off. */
  identity: identitySettings.optional(),
  /** Servers that instances reach with a credential of the node, by name. */
  relays: z.record(relayName, relaySettings).optional(),
  tags: z.array(z.string()).optional(),
});
export type ClusterRecord = z.infer<typeof clusterRecord>;
export const clusterInfo = clusterRecord.extend({
  store: z.string(),
  nodes: z.array(z.string()),
  instances: z.number().int(),
  /** Relays whose secret this node lacks. Absent in earlier releases. */
  relaysWithoutSecret: z.array(z.string()).optional(),
});
export type ClusterInfo = z.infer<typeof clusterInfo>;

export const renewCrypto = z.strictObject({
  /** Nodes that do not answer and are left behind. */
  skip: z.array(z.string().max(253)).max(1000).default([]),
});
export const cryptoRenewed = z.object({
  /** Nodes with the new key. */
  nodes: z.array(z.string()),
  skipped: z.array(z.string()),
});
export type CryptoRenewed = z.infer<typeof cryptoRenewed>;

/** Documents for verifiers of identities, by their path below the issuer. */
export const identityPublished = z.object({
  issuer: z.string(),
  documents: z.record(z.string(), z.string()),
});

export const renewIdentityKeys = z.strictObject({
  /** Seconds in which verifiers learn the new keys before these sign; 0: replace at once. */
  overlapS: z.number().int().min(0).max(MAX_KEY_OVERLAP_S),
});
export const identityKeysRenewed = z.object({
  /** Published keys, newest first. */
  keys: z.array(z.object({ createdAtMs: z.number(), signsFromMs: z.number() })),
});

export const makeJoinToken = z.strictObject({
  lifetimeS: z.number().int().min(MIN_JOIN_TOKEN_S).max(MAX_JOIN_TOKEN_S),
});
export const joinTokenMade = z.object({
  /** A secret that is worth as much as the cluster key until it expires. */
  token: z.string(),
  expiresAtMs: z.number(),
  /** Address of the store, without its password. */
  store: z.string(),
});
export type JoinTokenMade = z.infer<typeof joinTokenMade>;

/** Steps of a key renewal in their order. One node seals the records again. */
export const cryptoSteps = ['learn', 'seal', 'reseal', 'forget'] as const;
/** GET /v1/cluster/renew-crypto: progress of the renewal that this node runs. */
export const cryptoProgress = z.object({
  /** Number of renewals that this daemon has started. `done` belongs to the last one. */
  renewals: z.number(),
  done: z.array(z.object({ step: z.enum(cryptoSteps), node: z.string() })),
});
export type CryptoProgress = z.infer<typeof cryptoProgress>;

/** Key length of nacl.secretbox. */
const CLUSTER_KEY_BYTES = 32;
const clusterKey = z
  .base64()
  .refine((text) => Buffer.from(text, 'base64').length === CLUSTER_KEY_BYTES, 'not a key');

/** A step that the renewing node requests from another node. */
export const keyStep = z.discriminatedUnion('step', [
  z.strictObject({ step: z.literal('learn'), key: clusterKey }),
  z.strictObject({ step: z.literal('seal'), key: clusterKey }),
  z.strictObject({ step: z.literal('forget'), fingerprint: z.string().regex(/^[0-9a-f]{64}$/) }),
]);
export type KeyStep = z.infer<typeof keyStep>;

/** Settings of an OS definition, by OS name or OS+variant. The definition need not exist. */
export const osSafeInstall = z.enum(['optional', 'required']);

export const osSettings = z.object({
  schema: z.literal(1),
  name: z.string(),
  trusted: z.boolean(),
  /**
   * The trusted content, and when it was trusted. Absent in records from before content was
   * checked: these trust only a name, which is not enough.
   */
  trust: z.object({ digest: z.string(), atMs: z.number() }).optional(),
  /**
   * An administrator gave `--trusted no`. If a definition has create scripts for both the node and
   * the appliance, only the latter runs. Absent in older records.
   */
  isDistrusted: z.boolean().optional(),
  hidden: z.boolean(),
  blacklisted: z.boolean(),
  /** `required`: all scripts run in the appliance. Absent in older records. */
  safeInstall: osSafeInstall.default('optional'),
  /** Appliance of installations with this OS. Absent: the cluster's. */
  appliance: z.string().optional(),
  osParameters: z.record(osParameterName, z.string()),
  osParametersPrivate: z.record(osParameterName, z.string()),
});
export type OsSettings = z.infer<typeof osSettings>;

const osTrust = z.object({
  /**
   * `changed`: the content differs from the trusted content. `by-name`: only the name was trusted.
   */
  state: z.enum(['trusted', 'untrusted', 'changed', 'by-name']),
  /** Digest of the definition now; null if it cannot be computed. */
  digest: z.string().nullable(),
  trustedAtMs: z.number().nullable(),
});
export type OsTrust = z.infer<typeof osTrust>;

/** Defaults by name; private values are `<redacted>`. */
const osDefaults = z.record(z.string(), z.object({ value: z.string(), visibility }));

/** Settings of one variant. */
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
  /** Why the definition is invalid, in Ganeti's words. */
  problem: z.string().nullable(),
  apiVersions: z.array(z.number().int()),
  variants: z.array(z.string()),
  parameters: z.array(z.object({ name: z.string(), description: z.string() })),
  /** Scripts by the place where they run. */
  hostScripts: z.array(z.string()),
  applianceScripts: z.array(z.string()),
  /** Whether the present content on this node is trusted. */
  trusted: z.boolean(),
  trust: osTrust,
  hidden: z.boolean(),
  blacklisted: z.boolean(),
  safeInstall: osSafeInstall.default('optional'),
  appliance: z.string().optional(),
  defaults: osDefaults,
  /** Settings by variant. */
  variantSettings: z.record(z.string(), osVariantInfo),
});
export type OsInfo = z.infer<typeof osInfo>;

/** GET /v1/os-of-nodes: the definitions of a node, or why it does not answer. */
export const nodeOs = z.union([
  z.strictObject({ node: z.string(), operatingSystems: osInfo.array() }),
  z.strictObject({ node: z.string(), silent: z.string() }),
]);
export type NodeOs = z.infer<typeof nodeOs>;

export const openWeb = z.strictObject({
  /** TCP port of 127.0.0.1; 0: any free port. */
  port: z.number().int().min(0).max(MAX_PORT).default(0),
});

/** POST /v1/web: an address that opens the page once. The next line replaces it after its use. */
export const webLink = z.object({ url: z.string() });
export type WebLink = z.infer<typeof webLink>;

/** GET /session of a web server: the user of the cookie. */
export const webSession = z.object({
  user: z.string(),
  role: z.enum(['read', 'write']),
  /** Bound to instances: other instances and the cluster do not exist for the user. */
  isBound: z.boolean(),
  /** Value of the header X-Gnt-Csrf, which every change needs. */
  csrf: z.string(),
  node: z.string(),
  version: z.string(),
});
export type WebSession = z.infer<typeof webSession>;
