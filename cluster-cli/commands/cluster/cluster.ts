import type { ClusterRecord } from '#shared/contract/api.ts';
import { BUILT_APPLIANCE } from '#shared/contract/appliance-manifest.ts';
import { DEFAULT_LOW_SPACE_PERCENT } from '#shared/contract/cluster-settings.ts';
import { downloadLimitsOf } from '#shared/contract/download-limits.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { GIB } from '#shared/units/bytes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { describeStoreUrl } from '#shared/store/store-url.ts';
import type { Context } from '../../terminal/context.ts';
import { formatBytes, formatTime } from '../../render/format.ts';
import { renderOutline } from '../../render/outline.ts';
import { parseDataRate, parseSizeBytes, parseSizeMiB } from '../../values/size.ts';
import { createValueSource, type ValueSource } from '../../values/value-source.ts';
import { parseNics } from '../instance/parse-options.ts';
import { isUnset, orUnset } from '../instance/parse-documents.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { composeIdentity, describeIdentity, type IdentityOptions } from './identity.ts';
import { describeRelays, parseRelays } from './relays.ts';
import { listOrNone, parseRemovable, parseServices } from './services.ts';

export interface ClusterOptions extends SubmitOptions, IdentityOptions {
  /** Seconds; 0 is none. */
  readonly installTimeout?: number;
  readonly hostScripts?: boolean;
  readonly defaultOs?: string;
  readonly maxImageSize?: string;
  readonly dataRate?: string;
  readonly remoteFolders?: string;
  readonly sharedFileStorageDir?: string;
  readonly vgName?: string;
  readonly zfsPool?: string;
  /** Percent; 0 is none. */
  readonly lowSpace?: number;
  readonly remoteHosts?: string;
  readonly confineGuests?: boolean;
  readonly guestNetworks?: string;
  /** Seconds; 0 is none. */
  readonly downloadTimeout?: number;
  /** Bytes a second; 0 is none. */
  readonly minDownloadRate?: number;
  readonly exposeService?: readonly string[];
  readonly packageMirror?: readonly string[];
  readonly relay?: readonly string[];
  readonly imageKey?: readonly string[];
  readonly imageCa?: string;
  readonly defaultSize?: string;
  readonly defaultMemory?: string;
  readonly defaultVcpus?: string;
  readonly defaultNet?: string;
  readonly defaultNetwork?: string;
  readonly store?: string;
  readonly clusterKey?: string;
}

/**
 * Creates or joins a cluster in a common store if `--store` is given, while gnt-noded is stopped.
 * Without `--store`, the first start of gnt-noded has created the cluster: reports it and changes
 * the given settings.
 */
export async function runClusterInit(
  context: Context,
  name: string | undefined,
  options: ClusterOptions,
): Promise<void> {
  if (await chooseStore(context, name, options)) return;
  const client = await context.client();
  const cluster = await client.ask('GET /v1/cluster');
  if (name !== undefined && name !== cluster.name) {
    throw new AppError('CONFLICT', `this node is in cluster ${cluster.name}, not ${name}`, {
      hint: 'Omit the name, or use another GNT_ROOT for another cluster',
      details: { cluster: cluster.name },
    });
  }
  if (options.store !== undefined) refuseOtherStore(cluster.store, options.store);
  const origin = cluster.store.startsWith('sqlite ')
    ? ': the first start of gnt-noded made it'
    : '';
  context.note(`cluster ${cluster.name} exists${origin} (${formatTime(cluster.createdAtMs)})`);
  const changes = composeChanges(options, context);
  if (Object.keys(changes).length > 0) await modify(context, changes, options);
}

export async function runClusterModify(context: Context, options: ClusterOptions): Promise<void> {
  const changes = composeChanges(options, context);
  if (options.store !== undefined) {
    const client = await context.client();
    refuseOtherStore((await client.ask('GET /v1/cluster')).store, options.store);
  }
  if (Object.keys(changes).length > 0) {
    await modify(context, changes, options);
    return;
  }
  if (options.store !== undefined) return;
  throw new AppError('USAGE', 'Please give at least one of the parameters.', {
    hint: 'gnt-cluster modify --help',
  });
}

/** Runs `gnt-cluster add-tags` and `remove-tags`. */
export async function runClusterTags(
  context: Context,
  tags: { readonly addTags: string[] } | { readonly removeTags: string[] },
  options: SubmitOptions,
): Promise<void> {
  await modify(context, tags, options);
}

export async function runClusterListTags(context: Context): Promise<void> {
  const client = await context.client();
  const { tags = [] } = await client.ask('GET /v1/cluster');
  for (const tag of tags.toSorted()) context.print(tag);
}

/** @param current as shown, without a password */
function refuseOtherStore(current: string, wanted: string): void {
  if (wanted === current || describeStoreUrl(wanted) === current) return;
  throw new AppError(
    'NOT_SUPPORTED',
    `the store of a running node cannot be changed (it is ${current})`,
    {
      hint: 'A node without instances changes from its embedded store to a common one: systemctl stop gnt-noded, then gnt-cluster init --store URL',
    },
  );
}

/** @returns true if nothing is left to do */
async function chooseStore(
  context: Context,
  name: string | undefined,
  options: ClusterOptions,
): Promise<boolean> {
  if (options.store === undefined) {
    if (options.clusterKey === undefined) return false;
    throw new AppError('USAGE', '--cluster-key requires --store', {
      hint: 'gnt-cluster init --store URL --cluster-key FILE',
    });
  }
  // `gnt-cluster info` shows the embedded store by this name, which the caller compares.
  if (options.clusterKey === undefined && options.store.startsWith('sqlite ')) return false;
  const { findCommonStore, initStore } = await import('./init-store.ts');
  const current = await findCommonStore(context.paths);
  if (current === null) {
    refuseSettings(options);
    const url = context.values.resolve('--store', options.store);
    await initStore(context, name, url, options.clusterKey);
    return true;
  }
  const url = context.values.resolve('--store', options.store);
  refuseOtherStore(current, url);
  if (options.clusterKey === undefined && hasSettings(options)) return false;
  // A name alone may repeat an interrupted init, when no daemon runs yet.
  if (options.clusterKey !== undefined || name !== undefined) {
    await initStore(context, name, url, options.clusterKey);
    return true;
  }
  context.note(`this node already uses the store ${current}`);
  return true;
}

/** Refuses settings: jobs change them, and jobs need a running node. */
function refuseSettings(options: ClusterOptions): void {
  if (!hasSettings(options)) return;
  throw new AppError('USAGE', 'settings cannot be changed together with a new --store', {
    hint: 'Start gnt-noded first, then run gnt-cluster modify',
  });
}

/** Tells whether the options contain settings. Does not read the files that they name. */
function hasSettings({ imageKey, imageCa, ...options }: ClusterOptions): boolean {
  const context = { values: createValueSource(), warn: () => undefined };
  if (imageKey !== undefined || imageCa !== undefined) return true;
  return Object.keys(composeChanges(options, context)).length > 0;
}

/** `--default-net no-nics`: instances of launch without NICs. */
const NO_NICS = 'no-nics';
/** The stored form in the record of the cluster. */
const NO_NICS_STORED = 'none';

type ClusterChanges = Omit<Extract<OpcodeInput, { opcode: 'CLUSTER_SET_PARAMS' }>, 'opcode'>;

async function modify(
  context: Context,
  changes: ClusterChanges,
  options: SubmitOptions,
): Promise<void> {
  const job = await submitAndWatch(context, { opcode: 'CLUSTER_SET_PARAMS', ...changes }, options);
  if (job !== null && !options.json) context.note('cluster modified');
}

/**
 * Returns the settings that the options change.
 * @throws AppError USAGE, FILE_UNREADABLE
 */
export function composeChanges(
  options: ClusterOptions,
  context: Pick<Context, 'values' | 'warn'>,
): ClusterChanges {
  const { values } = context;
  return {
    ...(options.installTimeout !== undefined && { installTimeoutS: options.installTimeout }),
    ...(options.hostScripts !== undefined && { hostScripts: options.hostScripts }),
    ...(options.defaultOs !== undefined && { defaultOs: orUnset(options.defaultOs) }),
    ...(options.maxImageSize !== undefined && {
      maxImageBytes: parseSizeBytes('--max-image-size', options.maxImageSize),
    }),
    ...(options.downloadTimeout !== undefined && { downloadTimeoutS: options.downloadTimeout }),
    ...(options.minDownloadRate !== undefined && { minDownloadRate: options.minDownloadRate }),
    ...(options.remoteFolders !== undefined && {
      remoteFolders: listOrNone(options.remoteFolders),
    }),
    ...(options.sharedFileStorageDir !== undefined && {
      sharedFileStorageDir: orUnset(options.sharedFileStorageDir),
    }),
    ...(options.vgName !== undefined && { vgName: orUnset(options.vgName) }),
    ...(options.zfsPool !== undefined && { zfsPool: orUnset(options.zfsPool) }),
    ...(options.dataRate !== undefined && { dataRate: parseDataRate(options.dataRate) }),
    ...(options.lowSpace !== undefined && { lowSpacePercent: options.lowSpace }),
    ...(options.remoteHosts !== undefined && { remoteHosts: listOrNone(options.remoteHosts) }),
    ...(options.confineGuests !== undefined && { confineGuests: options.confineGuests }),
    ...(options.guestNetworks !== undefined && {
      guestNetworks: listOrNone(options.guestNetworks),
    }),
    ...(options.imageCa !== undefined && { imageCa: readCa(options.imageCa, values) }),
    ...composeLaunchDefaults(options, context),
    ...composeIdentity(options, context),
    ...(options.exposeService && { exposeServices: parseServices(options.exposeService, context) }),
    ...(options.packageMirror && { packageMirrors: parseMirrors(options.packageMirror, context) }),
    ...(options.relay && { relays: parseRelays(options.relay) }),
    ...(options.imageKey && { imageKeys: parseImageKeys(options.imageKey, context) }),
  };
}

/** @throws AppError USAGE */
function composeLaunchDefaults(
  options: ClusterOptions,
  context: Pick<Context, 'warn'>,
): Pick<ClusterChanges, 'launchDefaults'> {
  const { defaultSize, defaultMemory, defaultVcpus, defaultNet, defaultNetwork } = options;
  if (defaultNet !== undefined && defaultNetwork !== undefined) {
    throw new AppError('USAGE', '--default-net and --default-network exclude each other', {
      hint: 'Omit one of them',
    });
  }
  const read = <T>(
    option: string,
    text: string | undefined,
    parse: (text: string) => T,
  ): T | null | undefined => {
    if (text === undefined) return undefined;
    return isUnset(option, text, context) ? null : parse(text);
  };
  if (defaultNet === 'none')
    context.warn(
      '--default-net none unsets the default: launch then adds a mode=user NIC. For no NIC: --default-net no-nics',
    );
  const given = Object.entries({
    diskBytes: read('--default-size', defaultSize, (text) =>
      parseSizeBytes('--default-size', text),
    ),
    memoryMiB: read('--default-memory', defaultMemory, (text) =>
      parseSizeMiB('--default-memory', text),
    ),
    vcpus: read('--default-vcpus', defaultVcpus, (text) => {
      if (/^\d{1,3}$/.test(text) && Number(text) > 0) return Number(text);
      throw new AppError(
        'USAGE',
        `option --default-vcpus: '${text}' is not a number of processors`,
        {
          hint: 'Write a whole number from 1 to 255, or none',
        },
      );
    }),
    net: read('--default-net', defaultNet, (text) => {
      if (text === NO_NICS) return NO_NICS_STORED;
      parseNics([`0:${text}`], createValueSource());
      return text;
    }),
    ...(defaultNetwork !== undefined && {
      net: read('--default-network', defaultNetwork, (text) => `network=${text},ip=pool`),
    }),
  }).filter(([, value]) => value !== undefined);
  return given.length === 0 ? {} : { launchDefaults: Object.fromEntries(given) };
}

/** Reads PEM certificates, as text or `@FILE`; null unsets them. */
function readCa(text: string, values: ValueSource): string | null {
  return orUnset(values.resolve('--image-ca', text)) ?? null;
}

/**
 * Parses `NAME=URL` or `NAME=none`. The node checks the URL.
 * @throws AppError USAGE
 */
function parseMirrors(
  texts: readonly string[],
  context: Pick<Context, 'warn'>,
): Record<string, string | null> {
  return Object.fromEntries(parseRemovable('--package-mirror', texts, context));
}

/**
 * Parses `NAME=@FILE`, `NAME=KEY` or `NAME=none`.
 * @throws AppError USAGE, FILE_UNREADABLE
 */
function parseImageKeys(
  texts: readonly string[],
  context: Pick<Context, 'values' | 'warn'>,
): Record<string, string | null> {
  const given = texts.map((text): [string, string | null] => {
    const [, name = '', file] = /^([^=]+)=@(.*)$/s.exec(text) ?? [];
    if (file !== undefined) return [name, context.values.readText('--image-key', file)];
    const [pair] = parseRemovable('--image-key', [text], context);
    return pair ?? [text, null];
  });
  return Object.fromEntries(given);
}

export async function runClusterInfo(
  context: Context,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const cluster = await client.ask('GET /v1/cluster');
  if (options.json) {
    context.print(JSON.stringify(cluster, null, 2));
    return;
  }
  const limits = downloadLimitsOf(cluster);
  const services = Object.entries(cluster.exposeServices).map(([key, service]) => ({
    key,
    value: `${service.protocol === 'udp' ? 'UDP port' : 'port'} ${service.port} to ${'socketPath' in service ? service.socketPath : `${service.host}:${service.hostPort}`}`,
  }));
  const keys = Object.entries(cluster.imageKeys ?? {}).map(([key, { kind, ...imageKey }]) => ({
    key,
    value: 'id' in imageKey ? `${kind} ${imageKey.publicKey}` : kind,
  }));
  const mirrors = Object.entries(cluster.packageMirrors ?? {}).map(([key, value]) => ({
    key,
    value,
  }));
  const lines = renderOutline([
    { key: 'Cluster name', value: cluster.name },
    { key: 'Cluster UUID', value: cluster.uuid },
    { key: 'Creation time', value: formatTime(cluster.createdAtMs) },
    { key: 'Store', value: cluster.store },
    { key: 'Nodes', value: cluster.nodes.join(', ') },
    { key: 'Instances', value: cluster.instances },
    {
      key: 'Installation timeout',
      value: cluster.installTimeoutS === 0 ? 'none' : `${cluster.installTimeoutS} s`,
    },
    { key: 'Scripts on nodes', value: cluster.hostScripts },
    { key: 'Appliance', value: cluster.appliance ?? BUILT_APPLIANCE },
    { key: 'Default OS', value: cluster.defaultOs ?? 'none' },
    { key: 'Disk of launch', value: formatBytes(cluster.launchDefaults?.diskBytes ?? 10 * GIB) },
    {
      key: 'Memory and VCPUs of launch',
      value: `${cluster.launchDefaults?.memoryMiB ?? 512} MiB, ${cluster.launchDefaults?.vcpus ?? 1}`,
    },
    { key: 'NIC of launch', value: describeLaunchNet(cluster) },
    { key: 'Shared file storage', value: cluster.sharedFileStorageDir ?? 'none' },
    { key: 'Volume group', value: cluster.vgName ?? 'none' },
    { key: 'ZFS pool', value: cluster.zfsPool ?? 'none' },
    { key: 'Warning of low space', value: describeLowSpace(cluster) },
    {
      key: 'Rate of moves',
      value: cluster.dataRate ? `${formatBytes(cluster.dataRate)}/s` : 'no limit',
    },
    {
      key: 'Remote API folders',
      value: (cluster.remoteFolders ?? []).join(', ') || 'none',
    },
    {
      key: 'Remote API hosts',
      value: ['the internet', ...(cluster.remoteHosts ?? [])].join(', '),
    },
    { key: 'Guests reach public addresses only', value: cluster.confineGuests ?? false },
    {
      key: 'Private networks for all guests',
      value: (cluster.guestNetworks ?? []).join(', ') || 'none',
    },
    ...describeIdentity(cluster),
    { key: 'Largest image', value: formatBytes(limits.maxImageBytes) },
    {
      key: 'Download timeout',
      value: limits.timeoutS === 0 ? 'none' : `${limits.timeoutS} s`,
    },
    {
      key: 'Slowest download',
      value: limits.minRate === 0 ? 'any' : `${formatBytes(limits.minRate)}/s`,
    },
    {
      key: 'Exposed services',
      value: services.length === 0 ? null : `${services.length}`,
      children: services,
    },
    {
      key: 'Image keys',
      value: keys.length === 0 ? 'none: no signature is required' : `${keys.length}`,
      children: keys,
    },
    {
      key: 'Certificate authorities',
      value: `system${cluster.imageCa === undefined ? '' : ' and --image-ca'}`,
    },
    {
      key: 'Package mirrors',
      value: mirrors.length === 0 ? null : `${mirrors.length}`,
      children: mirrors,
    },
    describeRelays(cluster),
  ]);
  context.print(lines.join('\n'));
}

function describeLaunchNet({ launchDefaults }: Pick<ClusterRecord, 'launchDefaults'>): string {
  const net = launchDefaults?.net ?? 'mode=user';
  return net === NO_NICS_STORED ? NO_NICS : net;
}

function describeLowSpace({
  lowSpacePercent = DEFAULT_LOW_SPACE_PERCENT,
}: Pick<ClusterRecord, 'lowSpacePercent'>): string {
  return lowSpacePercent === 0 ? 'never' : `below ${lowSpacePercent} % of a file system`;
}
