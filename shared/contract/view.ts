import { z } from 'zod';
import { bootReporting } from './boot-report.ts';
import { viewBoot } from './boot-view.ts';
import { serviceProtocol } from './cluster-settings.ts';
import { hookDocuments } from './hooks.ts';
import { viewIdentity } from './identity.ts';
import { hypervisorParameters } from './parameter-keys.ts';
import { viewLifecycle } from './lifecycle.ts';
import { installPlan } from './plan.ts';
import {
  base64,
  channelIp,
  deviceName,
  dialect,
  fileName,
  instanceName,
  macAddress,
  nodeName,
  osParameterName,
  sha256Hex,
  socketPath,
  timestampMs,
  tokenPolicy,
  uuid,
  visibility,
} from './primitives.ts';
import { nicNetwork } from './static-network.ts';

/**
 * Largest user-data, vendor-data or network-config document, in bytes of base64 (1 MiB of content).
 */
const MAX_DOCUMENT_BASE64 = 1_400_000;
/** Largest OS definition archive, in bytes of base64 (16 MiB of content). */
const MAX_DEFINITION_BASE64 = 22_400_000;

const document = base64.max(MAX_DOCUMENT_BASE64);

export const viewNic = z.strictObject({
  mac: macAddress,
  uuid: uuid.optional(),
  name: z.string().max(255).optional(),
  ip: z.string().max(64).optional(),
  /** Addresses of the NIC. Absent: the guest uses DHCP. */
  network: nicNetwork.optional(),
  mode: z.string().max(32).optional(),
  link: z.string().max(64).optional(),
  /** True for the channel's NIC, which is always the last one. */
  communication: z.boolean(),
});

export const viewDisk = z.strictObject({
  uuid: uuid.optional(),
  name: z.string().max(255).optional(),
  /** As the guest sees it: `/dev/disk/by-id/virtio-SERIAL`. */
  serial: z.string().max(20).optional(),
  sizeBytes: z.number().int().nonnegative(),
});

/**
 * `value: null` marks a secret that noded no longer has. metad keeps serving its earlier value for
 * the same installation. Without one, readers get 410 with a reason, never an empty value.
 */
export const viewOsParameter = z.strictObject({ value: z.string().nullable(), visibility });

export const viewChannel = z.strictObject({
  device: deviceName,
  mac: macAddress,
  ip: channelIp,
  /** IP TTL of replies. 1 keeps them on the link. */
  hopLimit: z.number().int().min(1).max(255),
});

export const viewLimits = z.strictObject({
  requestsPerSecond: z.number().positive(),
  /** Requests at once above the rate. */
  burst: z.number().int().positive(),
  connections: z.number().int().positive(),
});
export const DEFAULT_LIMITS: ViewLimits = {
  requestsPerSecond: hypervisorParameters.metadata_request_rate.default,
  burst: hypervisorParameters.metadata_request_burst.default,
  connections: hypervisorParameters.metadata_connections.default,
};

/** Source of `os/scripts`, `os/image`, `os/package` and `install/` during an installation. */
export const viewInstall = z.strictObject({
  plan: installPlan,
  scripts: z.record(fileName, base64.max(MAX_DEFINITION_BASE64)),
  definitionTar: base64.max(MAX_DEFINITION_BASE64).nullable(),
  /**
   * Bytes of the fetched image file; null without an image. Its content comes from noded's content
   * socket.
   */
  imageSizeBytes: z.number().int().nonnegative().nullable(),
  hasPackage: z.boolean(),
  /** install/hooks.json; absent without hooks. */
  hooks: hookDocuments.optional(),
  /**
   * Key of the agent, once noded knows it, for a restarted metad. Absent: metad takes it from the
   * first event with a key.
   */
  agentKey: sha256Hex.optional(),
});

/**
 * An operator's service that this instance may reach through the channel. 169.254.169.254:`port`
 * leads to host:hostPort by TCP or UDP, or to a unix socket.
 */
export const viewService = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,31}$/),
  port: z.number().int().min(1).max(65535),
  host: z.string().max(253).optional(),
  hostPort: z.number().int().min(1).max(65535).optional(),
  socketPath: socketPath.optional(),
  /** Absent: TCP, the only protocol of earlier releases of metad. */
  protocol: serviceProtocol.optional(),
});

/**
 * The complete, immutable metadata of one instance. noded renders it, and every dialect is a pure
 * function of it.
 */
export const instanceView = z.strictObject({
  version: z.literal(1),
  /** Grows with each change by noded. metad refuses lower values. */
  revision: z.number().int().nonnegative(),
  name: instanceName,
  uuid,
  /** New after every installation. EC2, OpenStack, NoCloud and DMI use it as the instance's ID. */
  instanceId: uuid,
  mode: z.enum(['run', 'install']),
  os: z.string().max(255),
  hypervisor: z.string().max(32),
  beparams: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  nics: z.array(viewNic).max(32),
  disks: z.array(viewDisk).max(32),
  tags: z.array(z.string().max(128)).max(1000),
  /** The operator's own keys (`--metadata`). */
  metadata: z.record(z.string().max(255), z.string().max(65_536)),
  primaryNode: nodeName,
  /** Region name in the EC2 tree and zone of the node. */
  clusterName: z.string().max(253),
  channel: viewChannel,
  dialects: z.array(dialect).min(1),
  metadataToken: tokenPolicy,
  osParameters: z.record(osParameterName, viewOsParameter),
  userData: document.nullable(),
  vendorData: document.nullable(),
  networkConfig: document.nullable(),
  sshKeys: z.array(z.string().max(16_384)).max(100),
  limits: viewLimits,
  /** Absent: by vendor-data. */
  bootReport: bootReporting.optional(),
  services: z.array(viewService).max(32),
  install: viewInstall.nullable(),
  /** Absent: no run lists. Earlier releases of metad do not know it. */
  lifecycle: viewLifecycle.optional(),
  /** Absent: no boot through the channel. Earlier releases of metad do not know it. */
  boot: viewBoot.optional(),
  /** Instead of `boot`, if it cannot be rendered: metad keeps its present files. */
  keepsBoot: z.literal(true).optional(),
  /** Absent: no identity. Earlier releases of metad do not know it. */
  identity: viewIdentity.optional(),
  createdAtMs: timestampMs,
});

export type InstanceView = z.infer<typeof instanceView>;
export type ViewNic = z.infer<typeof viewNic>;
export type ViewLimits = z.infer<typeof viewLimits>;
export type ViewInstall = z.infer<typeof viewInstall>;
export type ViewService = z.infer<typeof viewService>;
export type ViewOsParameter = z.infer<typeof viewOsParameter>;
