import type { ViewBootFile } from '#shared/contract/boot-view.ts';
import type { ViewInstall } from '#shared/contract/view.ts';
import { reveal } from '#shared/secret/secret.ts';
import {
  agentLeaf,
  bytesLeaf,
  type FixedLeaf,
  jsonLeaf,
  type Leaf,
  type Leaves,
  lostLeaf,
  textLeaf,
} from '../view/leaf.ts';
import type { ServedView } from '../view/served-view.ts';
import { BOOT_FOLDER, bootTreePath } from './boot-paths.ts';
import { guestAgentLeaves } from './guest-agent-leaves.ts';
import { runListLeaves } from './run-list-leaves.ts';

/** Renders `/ganeti/<v>/`: Ganeti's own layout (design-os.rst), completed. */
export function renderGaneti(view: ServedView): Leaves {
  const leaves: Leaves = new Map<string, Leaf>([
    ['meta_data.json', jsonLeaf(metaData(view))],
    ['os/parameters.json', parameters(view)],
    ...oneByOne(view),
    ['read', { kind: 'live', source: 'read' }],
    ...runListLeaves(view),
    ...guestAgentLeaves(view),
    ...bootLeaves(view),
  ]);
  if (view.identity) leaves.set('identity/token', { kind: 'live', source: 'identity' });
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
      // Ganeti does not pass the sizes of disks to its metadata daemon.
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
  const lost = [...view.osParameters].filter(([, { value }]) => value === null);
  if (lost.length === 0) return allParameters(view);
  return { ...lostLeaf(lost.map(([name]) => name)), whenPartial: allParameters(view) };
}

/** Lost values are null: `?partial=true` returns the others. */
function allParameters(view: ServedView): FixedLeaf {
  const entries = [...view.osParameters].map(([name, { value, visibility }]) => [
    name,
    [value === null ? null : reveal(value), visibility],
  ]);
  return jsonLeaf(Object.fromEntries(entries), { isSecretBearing: true });
}

/** Returns each parameter as its raw bytes; 410 applies to a lost secret alone. */
function oneByOne(view: ServedView): readonly (readonly [string, Leaf])[] {
  return [...view.osParameters].map(([name, { value }]) => [
    `os/parameters/${name}`,
    value === null ? lostLeaf([name]) : textLeaf(reveal(value), { isSecretBearing: true }),
  ]);
}

/** Returns the files of the boot environment, in dr-provision's layout of its file root. */
function bootLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { boot, uuid } = view;
  if (!boot) return [];
  const files = Object.entries(boot.files).map(
    ([path, file]) => [`${BOOT_FOLDER}/${path}`, fileLeaf(file)] as const,
  );
  if (!boot.hasTree) return files;
  return [...files, [`${BOOT_FOLDER}/${bootTreePath(uuid)}`, { kind: 'live', source: 'boot' }]];
}

function fileLeaf(file: ViewBootFile): Leaf {
  if ('lost' in file) return lostLeaf(file.lost);
  return bytesLeaf(Buffer.from(file.content, 'base64'), {
    contentType: 'text/plain; charset=utf-8',
    isSecretBearing: file.isSecretBearing,
  });
}
