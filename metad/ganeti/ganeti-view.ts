import { DEFAULT_DIALECTS } from '#shared/contract/primitives.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import type { ServedView } from '../view/served-view.ts';
import type { GanetiInstance } from './instance-dict.ts';

/**
 * Makes a view from Ganeti's data. Missing values get defaults that change nothing for the guest.
 */
export function ganetiView(
  instance: GanetiInstance,
  ip: string,
  known: ServedView | undefined,
): ServedView {
  const nic = instance.nics.find((candidate) => candidate.ip === ip);
  return {
    version: 1,
    revision: (known?.revision ?? 0) + 1,
    name: instance.name,
    uuid: instance.uuid,
    instanceId: instance.uuid,
    mode: 'run',
    os: instance.os,
    hypervisor: instance.hypervisor,
    beparams: instance.beparams,
    nics: instance.nics.map((candidate) => ({ ...candidate })),
    disks: instance.disks.map((uuid) => ({ uuid, sizeBytes: 0 })),
    tags: [...instance.tags],
    metadata: {},
    primaryNode: instance.primaryNode,
    clusterName: 'ganeti',
    channel: { device: '', mac: nic?.mac ?? '', ip, hopLimit: 1 },
    dialects: [...DEFAULT_DIALECTS],
    metadataToken: 'optional',
    osParameters: parametersOf(instance, known),
    userData: null,
    vendorData: null,
    networkConfig: null,
    sshKeys: [],
    limits: DEFAULT_LIMITS,
    services: [],
    install: null,
    createdAtMs: instance.createdAtMs,
  };
}

/** `gnt-instance modify` sends no secrets, so the guest keeps its present ones. */
function parametersOf(
  instance: GanetiInstance,
  known: ServedView | undefined,
): ServedView['osParameters'] {
  if (instance.hasSecrets || !known || known.uuid !== instance.uuid) return instance.parameters;
  const kept = [...known.osParameters].filter(([, { visibility }]) => visibility === 'secret');
  return new Map([...kept, ...instance.parameters]);
}
