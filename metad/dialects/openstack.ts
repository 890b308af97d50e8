import type { ServedView } from '../view/served-view.ts';
import { bytesLeaf, jsonLeaf, textLeaf } from '../view/leaf.ts';
import type { Leaf, Leaves } from '../view/leaf.ts';
import { debianInterfaces, networkData } from './network-description.ts';
import { userData } from './user-data.ts';
import { vendorData } from './vendor-data.ts';

/** Renders `/openstack/<v>/`: Nova's metadata API. @param password posted by the guest */
export function renderOpenstack(view: ServedView, password: string): Leaves {
  return new Map<string, Leaf>([
    ['meta_data.json', jsonLeaf(metaData(view))],
    ['network_data.json', jsonLeaf(networkData(view))],
    ['password', textLeaf(password, { isSecretBearing: true })],
    ['user_data', bytesLeaf(userData(view), { isSecretBearing: true })],
    ['vendor_data.json', jsonLeaf(vendorDataJson(view), { isSecretBearing: true })],
    ['vendor_data2.json', jsonLeaf({})],
  ]);
}

function metaData(view: ServedView): object {
  const keys = view.sshKeys.map((data, index) => ({ name: `key-${index}`, type: 'ssh', data }));
  return {
    uuid: view.instanceId,
    name: view.name,
    hostname: view.name,
    availability_zone: view.primaryNode,
    // Not Nova's: cloud-init looks for it here.
    region: view.clusterName,
    launch_index: 0,
    meta: view.metadata,
    keys,
    public_keys: Object.fromEntries(keys.map(({ name, data }) => [name, data])),
    devices: view.disks.map(({ serial, name }) => ({
      type: 'disk',
      bus: 'virtio',
      serial,
      ...(name !== undefined && { tags: [name] }),
    })),
    network_config: { name: 'network_config', content_path: '/content/0000' },
  };
}

/**
 * Renders `/openstack/content/`: files that meta_data.json names by `content_path`, which is
 * relative to `/openstack/`, not to a version. Nova also has injected files there (`files`); gnt
 * has none.
 */
export function renderOpenstackContent(view: ServedView): Leaves {
  return new Map<string, Leaf>([['0000', textLeaf(debianInterfaces(view))]]);
}

/** cloud-init reads the string below the key `cloud-init`, and accepts an empty object. */
function vendorDataJson(view: ServedView): object {
  const document = vendorData(view).toString('utf8');
  return document === '' ? {} : { 'cloud-init': document };
}
