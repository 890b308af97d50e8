import type { ClusterRecord } from '#shared/contract/api.ts';
import type { ViewBoot } from '#shared/contract/boot-view.ts';
import { hypervisorParameters } from '#shared/contract/parameter-keys.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { HookDocument } from '#shared/contract/hooks.ts';
import type { ViewLifecycle } from '#shared/contract/lifecycle.ts';
import type { InstallPlan } from '#shared/contract/plan.ts';
import {
  DEFAULT_LIMITS,
  type InstanceView,
  type ViewLimits,
  type ViewOsParameter,
} from '#shared/contract/view.ts';
import { diskSerial } from '../../storage/disk-serials.ts';
import { installationParameters } from '../parameters/installation-parameters.ts';
import { type OsParameters, revealValue } from '../parameters/os-parameters.ts';

/** The view's content for an installation. */
export interface InstallContent {
  readonly plan: InstallPlan;
  readonly scripts: ReadonlyMap<string, Buffer>;
  readonly definitionTar: Buffer | null;
  readonly imageSizeBytes: number | null;
  readonly hasPackage: boolean;
  readonly hooks?: readonly HookDocument[];
  /** The agent's signing key, once it has registered. */
  readonly agentKey?: string;
}

export interface ViewInput {
  readonly instance: InstanceRecord;
  readonly cluster: ClusterRecord;
  readonly device: string;
  readonly revision: number;
  readonly parameters: OsParameters;
  readonly install: InstallContent | null;
  /** Only for a normal run of an instance with run lists. */
  readonly lifecycle?: ViewLifecycle | undefined;
  /** Only for a machine that boots from its channel. */
  readonly boot?: ViewBoot | 'kept' | undefined;
}

/** Returns the complete view of an instance, as metad renders it. Pure. */
export function planView(input: ViewInput): InstanceView {
  const { instance, cluster } = input;
  const hvparams = input.install === null ? instance.hvparams : installationParameters(instance);
  const parts = (input.install === null ? instance.partsOfRun : null) ?? instance;
  return {
    version: 1,
    revision: input.revision,
    name: instance.name,
    uuid: instance.uuid,
    instanceId: instance.instanceId,
    mode: input.install === null ? 'run' : 'install',
    os: instance.osType ?? '',
    hypervisor: 'kvm',
    beparams: { memory: instance.beparams.memoryMiB, vcpus: instance.beparams.vcpus },
    nics: [
      ...parts.nics.map((nic) => ({
        mac: nic.mac,
        uuid: nic.uuid,
        mode: nic.mode,
        communication: false,
        ...(nic.name !== null && { name: nic.name }),
        ...(nic.ip !== null && { ip: nic.ip }),
        ...(nic.network !== null && { network: nic.network }),
        ...(nic.link !== null && { link: nic.link }),
      })),
      {
        mac: instance.channel.mac,
        uuid: instance.channel.uuid,
        name: `ganeti:communication:${instance.name}`,
        ip: instance.channel.ip,
        mode: 'routed',
        link: 'communication_rt',
        communication: true,
      },
    ],
    disks: parts.disks.map((disk, index) => ({
      uuid: disk.uuid,
      serial: diskSerial(index),
      sizeBytes: disk.sizeBytes,
      ...(disk.name !== null && { name: disk.name }),
    })),
    tags: instance.tags,
    metadata: instance.metadata,
    primaryNode: instance.primaryNode,
    clusterName: cluster.name,
    channel: {
      device: input.device,
      mac: instance.channel.mac,
      ip: instance.channel.ip,
      hopLimit: hvparams.metadata_hop_limit ?? hypervisorParameters.metadata_hop_limit.default,
    },
    dialects: instance.dialects,
    metadataToken: instance.metadataToken,
    osParameters: encodeParameters(input.parameters),
    userData: instance.userData,
    vendorData: instance.vendorData,
    networkConfig: instance.networkConfig,
    sshKeys: instance.sshKeys,
    limits: planLimits(hvparams),
    // Left out if unset: a metad of an earlier release does not know the key.
    ...(hvparams.boot_report && { bootReport: hvparams.boot_report }),
    services: Object.entries(cluster.exposeServices).map(([name, service]) => ({
      name,
      ...service,
    })),
    install: input.install === null ? null : encodeInstall(input.install, cluster),
    ...(input.lifecycle && { lifecycle: input.lifecycle }),
    ...(input.boot && (input.boot === 'kept' ? { keepsBoot: true } : { boot: input.boot })),
    createdAtMs: instance.createdAtMs,
  };
}

function planLimits(hvparams: InstanceRecord['hvparams']): ViewLimits {
  return {
    requestsPerSecond: hvparams.metadata_request_rate ?? DEFAULT_LIMITS.requestsPerSecond,
    burst: hvparams.metadata_request_burst ?? DEFAULT_LIMITS.burst,
    connections: hvparams.metadata_connections ?? DEFAULT_LIMITS.connections,
  };
}

/** Sends null for a secret with an unknown value, since metad may have it. */
function encodeParameters(parameters: OsParameters): Record<string, ViewOsParameter> {
  const encoded = [...parameters].map(([name, parameter]) => {
    const { visibility } = parameter;
    return [name, { value: revealValue(parameter), visibility }] as const;
  });
  return Object.fromEntries(encoded);
}

function encodeInstall(
  install: InstallContent,
  { packageMirrors = {} }: ClusterRecord,
): NonNullable<InstanceView['install']> {
  const mirrors = Object.keys(packageMirrors);
  return {
    plan: { ...install.plan, ...(mirrors.length > 0 && { mirrors }) },
    scripts: Object.fromEntries(
      [...install.scripts].map(([name, bytes]) => [name, bytes.toString('base64')]),
    ),
    definitionTar: install.definitionTar?.toString('base64') ?? null,
    imageSizeBytes: install.imageSizeBytes,
    hasPackage: install.hasPackage,
    ...(install.hooks && { hooks: [...install.hooks] }),
    ...(install.agentKey !== undefined && { agentKey: install.agentKey }),
  };
}
