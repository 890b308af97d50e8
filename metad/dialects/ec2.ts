import { isIPv4 } from 'node:net';
import { formatAws, formatAwsTime, nameOfRole } from '#shared/contract/cloud-credentials.ts';
import { ec2Document, ec2Place, instanceType, primaryNic } from '#shared/contract/ec2-document.ts';
import { addressOf, familyOf, subnetOf } from '#shared/contract/static-network.ts';
import type { ViewNic } from '#shared/contract/view.ts';
import type { ServedView } from '../view/served-view.ts';
import { bytesLeaf, textLeaf } from '../view/leaf.ts';
import type { Leaf, Leaves } from '../view/leaf.ts';
import { describedNics } from './network-description.ts';
import type { ListingStyle } from './tree.ts';
import { userData } from './user-data.ts';

/** Renders `/latest/` and `/<date>/`: the applicable part of Amazon's instance metadata. */
export function renderEc2(view: ServedView): Leaves {
  const leaves: Leaves = new Map<string, Leaf>([
    ['user-data', bytesLeaf(userData(view), { isSecretBearing: true })],
    ...identityLeaves(view),
    ...roleLeaves(view),
  ]);
  const add = (path: string, text: string): void => {
    leaves.set(`meta-data/${path}`, textLeaf(text));
  };
  for (const [path, text] of Object.entries(topLevel(view))) add(path, text);
  for (const [path, text] of blockDevices(view)) add(`block-device-mapping/${path}`, text);
  view.sshKeys.forEach((key, index) => add(`public-keys/${index}/openssh-key`, key.trim()));
  describedNics(view).forEach((nic, index) => {
    for (const [name, text] of Object.entries(interfaceFacts(view, nic, index))) {
      add(`network/interfaces/macs/${nic.mac}/${name}`, text);
    }
  });
  for (const [key, value] of Object.entries(view.metadata)) {
    // Amazon's rule for tags in metadata: a key must be a valid path segment.
    if (TAG_KEY.test(key)) add(`tags/instance/${key}`, value);
  }
  return leaves;
}

const TAG_KEY = /^(?!\.{1,2}$)[A-Za-z0-9+\-=._:@,]+$/;

/** Amazon lists keys as `index=name`, the only entries that are not path segments. */
export const EC2_LISTING: ListingStyle = {
  endsWithNewline: false,
  entry: (folder, name, isFolder) => {
    if (folder === 'meta-data/public-keys') return publicKeyEntry(name);
    return isFolder ? `${name}/` : name;
  },
};

function publicKeyEntry(index: string): string {
  return `${index}=key-${index}`;
}

function topLevel(view: ServedView): Record<string, string> {
  const { mac, ip } = primaryNic(view);
  const place = ec2Place(view);
  return {
    'ami-id': view.os === '' ? 'none' : view.os,
    'ami-launch-index': '0',
    'ami-manifest-path': '(unknown)',
    hostname: view.name,
    'instance-action': 'none',
    'instance-id': view.instanceId,
    'instance-type': instanceType(view),
    'local-hostname': view.name,
    'local-ipv4': ip,
    mac,
    'placement/availability-zone': place.zone,
    'placement/region': place.region,
    'public-hostname': view.name,
    'reservation-id': `r-${view.instanceId.slice(0, 8)}`,
    'security-groups': 'default',
  };
}

/** The guest sees the disks as virtio disks in the instance's order. */
function blockDevices(view: ServedView): readonly (readonly [string, string])[] {
  return [
    ['ami', '/dev/vda'],
    ['root', '/dev/vda'],
    ...view.disks.slice(1).map((_disk, index) => [`ebs${index + 1}`, device(index + 1)] as const),
    // `mounts: [[data, /srv]]` finds a disk by the operator's name for it.
    ...view.disks.flatMap(({ name }, index) =>
      name !== undefined && DEVICE_NAME.test(name) ? [[name, device(index)] as const] : [],
    ),
  ];
}

/** A valid path segment that is not one of Amazon's names. */
const DEVICE_NAME = /^(?!(ami|root|swap|ebs\d+|ephemeral\d+)$)[A-Za-z0-9_-]{1,64}$/;

function device(index: number): string {
  return `/dev/vd${diskLetters(index)}`;
}

function diskLetters(index: number): string {
  const letter = String.fromCharCode(97 + (index % 26));
  return index < 26 ? letter : diskLetters(Math.floor(index / 26) - 1) + letter;
}

/**
 * cloud-init configures exactly the NICs listed here, by DHCP, with a route metric that grows with
 * device-number.
 */
function interfaceFacts(view: ServedView, nic: ViewNic, index: number): Record<string, string> {
  const ip = nic.communication ? view.channel.ip : nic.ip;
  return {
    'device-number': String(index),
    'interface-id': `eni-${nic.mac.replaceAll(':', '')}`,
    'local-hostname': view.name,
    mac: nic.mac,
    'owner-id': view.clusterName,
    // Without it cloud-init assumes EC2 Classic, and fetches everything again, with DHCP, in its
    // network stage.
    'vpc-id': 'vpc-gnt',
    ...addressFacts(nic, ip),
    ...(nic.communication && { 'subnet-ipv4-cidr-block': '169.254.0.0/16' }),
  };
}

/** Returns the part of fixed addresses that EC2 can express; its guests use DHCP anyway. */
function addressFacts({ network }: ViewNic, ip: string | undefined): Record<string, string> {
  const first = network?.addresses.find((address) => familyOf(address) === 'ipv4');
  if (first === undefined) return ip !== undefined && isIPv4(ip) ? { 'local-ipv4s': ip } : {};
  // Only one address: clients take a leaf with a line break for a listing.
  return { 'local-ipv4s': addressOf(first), 'subnet-ipv4-cidr-block': subnetOf(first) };
}

/**
 * Returns the identity document, with its signatures if the cluster signs it. Amazon's `pkcs7` is
 * signed by an older key than `rsa2048`; both have the same form.
 */
function identityLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { document, signature, pkcs7 } = view.identity?.ec2 ?? { document: ec2Document(view) };
  const leaves: [string, Leaf][] = [
    ['document', bytesLeaf(Buffer.from(document), { contentType: 'application/json' })],
  ];
  if (signature !== undefined) leaves.push(['signature', textLeaf(signature)]);
  if (pkcs7 !== undefined) leaves.push(['pkcs7', textLeaf(pkcs7)], ['rsa2048', textLeaf(pkcs7)]);
  return leaves.map(([name, leaf]) => [`dynamic/instance-identity/${name}`, leaf]);
}

/** Returns the role of the instance: an instance profile of the same name, and its credentials. */
function roleLeaves(view: ServedView): readonly (readonly [string, Leaf])[] {
  const { role } = view.identity?.aws ?? {};
  if (role === undefined) return [];
  const info = formatAws({
    Code: 'Success',
    LastUpdated: formatAwsTime(view.createdAtMs),
    InstanceProfileArn: role.replace(/:role\/.*$/, `:instance-profile/${nameOfRole(role)}`),
    InstanceProfileId: view.instanceId,
  });
  return [
    ['meta-data/iam/info', bytesLeaf(Buffer.from(info), { contentType: 'application/json' })],
    [`meta-data/iam/security-credentials/${nameOfRole(role)}`, { kind: 'live', source: 'aws' }],
  ];
}
