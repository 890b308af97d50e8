import { isIPv4 } from 'node:net';
import type { InstanceView } from './view.ts';

type DocumentedView = Pick<
  InstanceView,
  | 'beparams'
  | 'channel'
  | 'clusterName'
  | 'createdAtMs'
  | 'identity'
  | 'instanceId'
  | 'nics'
  | 'os'
  | 'primaryNode'
>;

/** Returns EC2's instance identity document. metad serves these bytes, and noded signs them. */
export function ec2Document(view: DocumentedView): string {
  const document = {
    accountId: view.clusterName,
    architecture: 'x86_64',
    availabilityZone: ec2Place(view).zone,
    billingProducts: null,
    devpayProductCodes: null,
    imageId: view.os === '' ? 'none' : view.os,
    instanceId: view.instanceId,
    instanceType: instanceType(view),
    kernelId: null,
    pendingTime: new Date(view.createdAtMs).toISOString().replace(/\.\d{3}Z$/, 'Z'),
    privateIp: primaryNic(view).ip,
    ramdiskId: null,
    region: ec2Place(view).region,
    version: '2017-09-30',
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/**
 * Returns the region and the zone of an instance. In a region of a cloud, the zone has Amazon's
 * form, from which some clients derive the region.
 */
export function ec2Place(view: Pick<InstanceView, 'clusterName' | 'identity' | 'primaryNode'>): {
  readonly region: string;
  readonly zone: string;
} {
  const { region } = view.identity ?? {};
  return region === undefined
    ? { region: view.clusterName, zone: view.primaryNode }
    : { region, zone: `${region}a` };
}

export function instanceType(view: Pick<InstanceView, 'beparams'>): string {
  const { vcpus, memory } = view.beparams;
  if (vcpus === undefined || memory === undefined) return 'ganeti';
  return `ganeti.${String(vcpus)}x${String(memory)}`;
}

/**
 * Returns the NIC of `mac`, `local-ipv4` and the document: the first if its address is known, else
 * the channel's.
 */
export function primaryNic({ nics, channel }: Pick<InstanceView, 'nics' | 'channel'>): {
  readonly mac: string;
  readonly ip: string;
} {
  const [first] = nics;
  return first?.ip !== undefined && isIPv4(first.ip)
    ? { mac: first.mac, ip: first.ip }
    : { mac: channel.mac, ip: channel.ip };
}
