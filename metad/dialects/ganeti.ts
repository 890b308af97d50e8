import { reveal } from '#shared/secret/secret.ts';
import type { ViewInstall } from '#shared/contract/view.ts';
import type { ServedView } from '../view/served-view.ts';
import { agentLeaf, bytesLeaf, goneLeaf, jsonLeaf } from '../view/leaf.ts';
import type { Leaf, Leaves } from '../view/leaf.ts';

/** `/ganeti/<v>/`: Ganeti's own layout (design-os.rst), completed. */
export function renderGaneti(view: ServedView): Leaves {
  const leaves: Leaves = new Map<string, Leaf>([
    ['meta_data.json', jsonLeaf(metaData(view))],
    ['os/parameters.json', parameters(view)],
    ['read', { kind: 'live', source: 'read' }],
  ]);
  if (view.mode === 'install' && view.install) addInstall(leaves, view.install);
  return leaves;
}

function addInstall(leaves: Leaves, install: ViewInstall): void {
  leaves.set('install/plan.json', jsonLeaf(install.plan));
  if (install.hooks) leaves.set('install/hooks.json', agentLeaf(install.hooks));
  for (const [name, script] of Object.entries(install.scripts)) {
    leaves.set(`os/scripts/${name}`, bytesLeaf(Buffer.from(script, 'base64')));
  }
  if (install.definitionTar !== null) {
    const archive = Buffer.from(install.definitionTar, 'base64');
    leaves.set('os/definition.tar', bytesLeaf(archive, { contentType: 'application/x-tar' }));
  }
  if (install.imageSizeBytes !== null) leaves.set('os/image', { kind: 'live', source: 'image' });
  if (install.hasPackage) {
    leaves.set('os/package', { kind: 'live', source: 'package' });
    leaves.set('os/os-install-package', { kind: 'live', source: 'package' });
  }
  for (const name of install.plan.mirrors ?? [])
    leaves.set(`mirror/${name}`, { kind: 'live', source: 'mirror' });
}

function metaData(view: ServedView): object {
  return {
    name: view.name,
    uuid: view.uuid,
    instance_id: view.instanceId,
    hostname: view.name,
    mode: view.mode,
    os: view.os,
    hypervisor: view.hypervisor,
    beparams: view.beparams,
    disks: view.disks.map((disk, index) => ({
      index,
      uuid: disk.uuid,
      name: disk.name,
      serial: disk.serial,
      // Ganeti does not tell its own daemon how large the disks are.
      size_bytes: disk.sizeBytes === 0 ? null : disk.sizeBytes,
    })),
    nics: view.nics.map((nic, index) => ({
      index,
      mac: nic.mac,
      uuid: nic.uuid,
      name: nic.name,
      ip: nic.communication ? view.channel.ip : nic.ip,
      network: nic.network,
      mode: nic.mode,
      link: nic.link,
      communication: nic.communication,
    })),
    tags: view.tags,
    metadata: view.metadata,
    primary_node: view.primaryNode,
    cluster_name: view.clusterName,
  };
}

function parameters(view: ServedView): Leaf {
  const lost: string[] = [];
  const entries: [string, [string, string]][] = [];
  for (const [name, { value, visibility }] of view.osParameters) {
    if (value === null) lost.push(name);
    else entries.push([name, [reveal(value), visibility]]);
  }
  if (lost.length > 0) return goneLeaf(lostReason(lost));
  return jsonLeaf(Object.fromEntries(entries), { isSecretBearing: true });
}

function lostReason(names: readonly string[]): string {
  const list = [...names].sort().join(', ');
  return `the host no longer has the secret OS parameters ${list}: they are kept in memory only and are lost in a restart; give them again with gnt-instance reinstall`;
}
