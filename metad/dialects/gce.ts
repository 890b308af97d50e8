import type { ServedView } from '../view/served-view.ts';
import { type Members, renderGoogleTree } from './google-tree.ts';
import { describeServiceAccounts } from './service-accounts.ts';
import type { Tree } from './tree.ts';
import { userData } from './user-data.ts';

/** Values that the guest wrote below `instance/guest-attributes/`, by namespace and key. */
export type GuestAttributes = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** The attributes may contain secrets of the operator. */
const HEADERS = ['Cache-Control', 'no-store'];
const MTU = 1500;
/** cloud-init accepts keys of this user for its own default user. */
const KEY_USER = 'cloudinit';

/** Renders `/computeMetadata/v1/`: Google's metadata. */
export function renderGce(view: ServedView, guestAttributes: GuestAttributes): Tree {
  const all = {
    instance: instance(view, guestAttributes),
    project: project(view),
    universe: UNIVERSE,
  };
  return renderGoogleTree(all, HEADERS);
}

const UNIVERSE = { universeDomain: 'googleapis.com' };

/** Google's numbers of projects and instances have more digits than JSON numbers keep. */
function numberOf(uuid: string): number {
  return parseInt(uuid.replaceAll('-', '').slice(0, 13), 16);
}

function project(view: ServedView): Members {
  return {
    attributes: {},
    numericProjectId: numberOf(view.uuid),
    projectId: view.clusterName,
  };
}

function instance(view: ServedView, guestAttributes: GuestAttributes): Members {
  const { name, instanceId, beparams, primaryNode, tags } = view;
  const place = `projects/${view.clusterName}`;
  return {
    attributes: attributes(view),
    cpuPlatform: 'Unknown CPU Platform',
    description: '',
    disks: view.disks.map(({ serial, name: diskName }, index) => ({
      deviceName: diskName ?? serial ?? `disk-${index}`,
      index,
      interface: 'VIRTIO',
      mode: 'READ_WRITE',
      type: 'PERSISTENT-BALANCED',
    })),
    guestAttributes: Object.fromEntries(
      [...guestAttributes].map(([space, keys]) => [space, Object.fromEntries(keys)]),
    ),
    hostname: name,
    id: numberOf(instanceId),
    image: '',
    machineType: `${place}/machineTypes/custom-${String(beparams['vcpus'] ?? 1)}-${String(beparams['memory'] ?? 0)}`,
    maintenanceEvent: 'NONE',
    name: name.split('.')[0] ?? name,
    networkInterfaces: nicsOf(view).map((each) => describeNic(each, place)),
    preempted: 'FALSE',
    scheduling: {
      automaticRestart: 'TRUE',
      onHostMaintenance: 'MIGRATE',
      preemptible: 'FALSE',
    },
    ...(view.identity?.google && { serviceAccounts: describeServiceAccounts(view) }),
    tags,
    virtualClock: { driftToken: '0' },
    zone: `${place}/zones/${primaryNode}`,
  };
}

/** The operator's metadata are attributes. They take precedence over the derived ones. */
function attributes(view: ServedView): Members {
  const given = userData(view);
  const text = given.toString('utf8');
  const isText = Buffer.from(text).equals(given) && !text.includes('\0');
  return {
    'enable-oslogin': 'FALSE',
    ...(view.sshKeys.length > 0 && {
      'ssh-keys': view.sshKeys.map((key) => `${KEY_USER}:${key}`).join('\n'),
    }),
    ...(given.length > 0 && {
      'user-data': isText ? text : given.toString('base64'),
      ...(!isText && { 'user-data-encoding': 'base64' }),
    }),
    ...view.metadata,
  };
}

/** Returns the channel alone if the instance has no other NIC, since clients expect one. */
function nicsOf({ nics }: ServedView): ServedView['nics'] {
  const own = nics.filter(({ communication }) => !communication);
  return own.length > 0 ? own : nics;
}

function describeNic({ mac, ip, network }: ServedView['nics'][number], place: string): Members {
  const [own = '', prefix] = (network?.addresses[0] ?? ip ?? '').split('/');
  const gateway = network?.gateways[0];
  return {
    accessConfigs: [],
    dnsServers: network?.nameservers ?? [],
    forwardedIps: [],
    ...(gateway !== undefined && { gateway }),
    ip: own,
    ipAliases: [],
    mac,
    mtu: network?.mtu ?? MTU,
    network: `${place}/networks/default`,
    ...(prefix !== undefined && !own.includes(':') && { subnetmask: maskOf(Number(prefix)) }),
    targetInstanceIps: [],
  };
}

function maskOf(prefix: number): string {
  return [0, 8, 16, 24]
    .map((from) => 256 - 2 ** (8 - Math.min(8, Math.max(0, prefix - from))))
    .join('.');
}
