import { stringify } from 'yaml';
import type { ServedView } from '../view/served-view.ts';
import { bytesLeaf } from '../view/leaf.ts';
import type { Leaf, Leaves } from '../view/leaf.ts';
import { networkConfig } from './network-description.ts';
import { userData } from './user-data.ts';
import { vendorData } from './vendor-data.ts';

/**
 * Renders `/nocloud/`: cloud-init's NoCloud seed. Absent documents are empty: a 404 costs a stock
 * guest ten seconds.
 */
export function renderNocloud(view: ServedView): Leaves {
  return new Map<string, Leaf>([
    ['meta-data', bytesLeaf(Buffer.from(metaData(view)), { contentType: 'text/yaml' })],
    ['network-config', bytesLeaf(networkConfig(view), { contentType: 'text/yaml' })],
    ['user-data', bytesLeaf(userData(view), { isSecretBearing: true })],
    ['vendor-data', bytesLeaf(vendorData(view), { isSecretBearing: true })],
  ]);
}

/** Keys of meta-data that are instructions to cloud-init. */
const INSTRUCTIONS = new Set(['dsmode', 'network-interfaces', 'seedfrom']);

function metaData(view: ServedView): string {
  const value = {
    // Templates find it as `{{ ds.meta_data.role }}`. Our own keys win.
    ...Object.fromEntries(
      Object.entries(view.metadata).filter(([name]) => !INSTRUCTIONS.has(name)),
    ),
    'instance-id': view.instanceId,
    'local-hostname': view.name,
    'availability-zone': view.primaryNode,
    region: view.clusterName,
    ...(view.sshKeys.length > 0 && { 'public-keys': view.sshKeys }),
  };
  // PyYAML reads YAML 1.1: without this, `yes` or `1:30` would change its type.
  return stringify(value, { version: '1.1', lineWidth: 0 });
}
