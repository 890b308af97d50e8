import type { ServedView } from '../view/served-view.ts';
import { describeServiceAccounts } from './service-accounts.ts';
import { FLAVOR_HEADER } from './metadata-flavor.ts';
import { type ContentResource, listingOf, type Resource, textResource, type Tree } from './tree.ts';
import { userData } from './user-data.ts';

/** Values that the guest wrote below `instance/guest-attributes/`, by namespace and key. */
export type GuestAttributes = ReadonlyMap<string, ReadonlyMap<string, string>>;

type Value = string | number | Members | readonly (string | Members)[];
interface Members {
  readonly [name: string]: Value;
}

/** Levels below these members whose names are users', and keep their spelling in paths. */
const OWN_LEVELS: ReadonlyMap<string, number> = new Map([
  ['attributes', 1],
  ['guestAttributes', 2],
]);
const OWN_NAME = /^[\w.@ -]+$/;
/** Lists that Google serves as one file. */
const LINES: ReadonlySet<string> = new Set(['tags', 'dnsServers']);
/** The attributes may contain secrets of the operator. */
const HEADERS = [...FLAVOR_HEADER, 'Cache-Control', 'no-store'];
const MTU = 1500;
/** cloud-init accepts keys of this user for its own default user. */
const KEY_USER = 'cloudinit';

/**
 * Renders `/computeMetadata/v1/`: Google's metadata. The paths follow from the answer to
 * `?recursive=true`, as Google's do: `networkInterfaces` becomes `network-interfaces/0/`.
 */
export function renderGce(view: ServedView, guestAttributes: GuestAttributes): Tree {
  const tree = new Map<string, Resource>();
  const all = {
    instance: instance(view, guestAttributes),
    project: project(view),
    universe: UNIVERSE,
  };
  addFolder(tree, '', all, 0);
  return tree;
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
    ...(view.identity?.google && { serviceAccounts: accounts(view) }),
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

function accounts(view: ServedView): Members {
  return Object.fromEntries(
    Object.entries(describeServiceAccounts(view)).map(([name, account]) => [name, { ...account }]),
  );
}

/**
 * Adds a folder and everything below it.
 * @param ownLevels levels whose names are users', not Google's
 */
function addFolder(
  tree: Map<string, Resource>,
  path: string,
  members: Members,
  ownLevels: number,
): void {
  const entries: string[] = [];
  for (const [key, value] of Object.entries(members)) {
    const name = ownLevels > 0 ? key : toPathName(key);
    // A name with a slash or a control character has no path. It is in the recursive answer.
    if (!OWN_NAME.test(name)) continue;
    const below = path === '' ? name : `${path}/${name}`;
    const children = childrenOf(key, value);
    entries.push(children === null ? name : `${name}/`);
    if (children === null) tree.set(below, leaf(value));
    // Service accounts have addresses of their own, which serve tokens.
    else if (below !== 'instance/service-accounts')
      addFolder(tree, below, children, ownLevels > 0 ? ownLevels - 1 : (OWN_LEVELS.get(key) ?? 0));
  }
  tree.set(path, folder(entries, members));
}

/** @returns null for a value that is no folder; the names of a list's elements are numbers */
function childrenOf(key: string, value: Value): Members | null {
  if (typeof value !== 'object' || LINES.has(key)) return null;
  return Object.fromEntries(Object.entries(value));
}

/** `networkInterfaces` is `network-interfaces` in a path. */
function toPathName(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function leaf(value: Value): ContentResource {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const whole = flavored(textResource(JSON.stringify(value), 'application/json'));
  return { ...flavored(textResource(text, 'application/text')), whenJson: whole };
}

/** A folder as JSON may contain long documents. It is rendered on its first request. */
function folder(entries: readonly string[], members: Members): ContentResource {
  const listing = flavored(listingOf(entries, true));
  let whole: ContentResource | undefined;
  return Object.defineProperty(listing, 'whenRecursive', {
    enumerable: true,
    get: () => (whole ??= flavored(textResource(JSON.stringify(members), 'application/json'))),
  });
}

/** Clients send the ETag back in a URL without encoding it, so it has no quotes here. */
function flavored(resource: ContentResource): ContentResource {
  const headers = resource.headers.map((each) =>
    each === resource.etag ? each.replaceAll('"', '') : each,
  );
  return { ...resource, headers: [...headers, ...HEADERS] };
}
