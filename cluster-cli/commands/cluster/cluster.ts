import type { ClusterRecord, DoctorReport, ListedNode } from '#shared/contract/api.ts';
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
import { parseSizeBytes, parseSizeMiB } from '../../values/size.ts';
import { createValueSource, type ValueSource } from '../../values/value-source.ts';
import { renderFindings } from '../node/doctor.ts';
import { parseNics } from '../instance/parse-options.ts';
import { orTakenBack } from '../instance/parse-documents.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { parseRemovable, parseServices } from './services.ts';

export interface ClusterOptions extends SubmitOptions {
  /** Seconds; 0 is none. */
  readonly installTimeout?: number;
  readonly hostScripts?: boolean;
  readonly defaultOs?: string;
  readonly maxImageSize?: string;
  readonly remoteFolders?: string;
  readonly sharedFileStorageDir?: string;
  readonly vgName?: string;
  readonly zfsPool?: string;
  /** Percent; 0 is none. */
  readonly lowSpace?: number;
  readonly remoteHosts?: string;
  /** Seconds; 0 is none. */
  readonly downloadTimeout?: number;
  /** Bytes a second; 0 is none. */
  readonly minDownloadRate?: number;
  readonly exposeService?: readonly string[];
  readonly packageMirror?: readonly string[];
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
 * `gnt-cluster init [NAME]`: with `--store` creates or joins a cluster in a common store while
 * gnt-noded is stopped. Without it, the first start of gnt-noded has created the cluster; this
 * reports it and changes the given settings.
 */
export async function runClusterInit(
  context: Context,
  name: string | undefined,
  options: ClusterOptions,
): Promise<void> {
  if (await chooseStore(context, name, options)) return;
  const client = await context.client();
  const cluster = await client.cluster();
  if (name !== undefined && name !== cluster.name) {
    throw new AppError('CONFLICT', `this node is in cluster ${cluster.name} already, not ${name}`, {
      hint: 'the first start of gnt-noded made it; leave out the name, or use another GNT_ROOT',
      details: { cluster: cluster.name },
    });
  }
  if (options.store !== undefined) refuseOtherStore(cluster.store, options.store);
  const origin = cluster.store.startsWith('sqlite ')
    ? ': the first start of gnt-noded made it'
    : '';
  context.note(`cluster ${cluster.name} exists${origin} (${formatTime(cluster.createdAtMs)})`);
  const changes = composeChanges(options, context.values);
  if (Object.keys(changes).length > 0) await modify(context, changes, options);
}

/** `gnt-cluster modify`. @throws AppError, CommandFailure */
export async function runClusterModify(context: Context, options: ClusterOptions): Promise<void> {
  const changes = composeChanges(options, context.values);
  if (options.store !== undefined) {
    const client = await context.client();
    refuseOtherStore((await client.cluster()).store, options.store);
  }
  if (Object.keys(changes).length > 0) {
    await modify(context, changes, options);
    return;
  }
  if (options.store !== undefined) return;
  throw new AppError('USAGE', 'Please give at least one of the parameters.', {
    hint: 'see: gnt-cluster modify --help',
  });
}

/** @param current as it is shown, without a password */
function refuseOtherStore(current: string, wanted: string): void {
  if (wanted === current || describeStoreUrl(wanted) === current) return;
  throw new AppError(
    'NOT_SUPPORTED',
    `the store of a running node cannot be changed (it is ${current})`,
    {
      hint: 'a node without instances changes from its embedded store to a common one: systemctl stop gnt-noded, then gnt-cluster init --store URL',
    },
  );
}

/** @returns whether there is nothing more to do. @throws AppError */
async function chooseStore(
  context: Context,
  name: string | undefined,
  options: ClusterOptions,
): Promise<boolean> {
  if (options.store === undefined) {
    if (options.clusterKey === undefined) return false;
    throw new AppError('USAGE', '--cluster-key needs --store', {
      hint: 'gnt-cluster init --store URL --cluster-key FILE',
    });
  }
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
  // A name alone may be given to repeat an init that was interrupted: no daemon runs yet.
  if (options.clusterKey !== undefined || name !== undefined) {
    await initStore(context, name, url, options.clusterKey);
    return true;
  }
  context.note(`this root has the store ${current} already`);
  return true;
}

/** Refuses settings: they are changed by jobs, which need a node that runs. */
function refuseSettings(options: ClusterOptions): void {
  if (!hasSettings(options)) return;
  throw new AppError('USAGE', 'settings cannot be given together with a new --store', {
    hint: 'start gnt-noded after this, then: gnt-cluster modify',
  });
}

/** Whether there are settings among the options; the files that they name are not read. */
function hasSettings({ imageKey, imageCa, ...options }: ClusterOptions): boolean {
  const source = createValueSource();
  if (imageKey !== undefined || imageCa !== undefined) return true;
  return Object.keys(composeChanges(options, source)).length > 0;
}

type ClusterChanges = Omit<Extract<OpcodeInput, { opcode: 'CLUSTER_SET_PARAMS' }>, 'opcode'>;

async function modify(
  context: Context,
  changes: ClusterChanges,
  options: SubmitOptions,
): Promise<void> {
  const job = await submitAndWatch(context, { opcode: 'CLUSTER_SET_PARAMS', ...changes }, options);
  if (job !== null && !options.json) context.note('the cluster is modified');
}

function listOrNone(text: string): string[] {
  return text === 'none' ? [] : text.split(',');
}

function composeChanges(options: ClusterOptions, values: ValueSource): ClusterChanges {
  return {
    ...(options.installTimeout !== undefined && { installTimeoutS: options.installTimeout }),
    ...(options.hostScripts !== undefined && { hostScripts: options.hostScripts }),
    ...(options.defaultOs !== undefined && { defaultOs: orTakenBack(options.defaultOs) }),
    ...(options.maxImageSize !== undefined && {
      maxImageBytes: parseSizeBytes('--max-image-size', options.maxImageSize),
    }),
    ...(options.downloadTimeout !== undefined && { downloadTimeoutS: options.downloadTimeout }),
    ...(options.minDownloadRate !== undefined && { minDownloadRate: options.minDownloadRate }),
    ...(options.remoteFolders !== undefined && {
      remoteFolders: listOrNone(options.remoteFolders),
    }),
    ...(options.sharedFileStorageDir !== undefined && {
      sharedFileStorageDir: orTakenBack(options.sharedFileStorageDir),
    }),
    ...(options.vgName !== undefined && { vgName: orTakenBack(options.vgName) }),
    ...(options.zfsPool !== undefined && { zfsPool: orTakenBack(options.zfsPool) }),
    ...(options.lowSpace !== undefined && { lowSpacePercent: options.lowSpace }),
    ...(options.remoteHosts !== undefined && { remoteHosts: listOrNone(options.remoteHosts) }),
    ...(options.imageCa !== undefined && { imageCa: readCa(options.imageCa, values) }),
    ...composeLaunchDefaults(options),
    ...(options.exposeService && { exposeServices: parseServices(options.exposeService) }),
    ...(options.packageMirror && { packageMirrors: parseMirrors(options.packageMirror) }),
    ...(options.imageKey && { imageKeys: parseImageKeys(options.imageKey, values) }),
  };
}

/** The word default takes one back. @throws AppError USAGE */
function composeLaunchDefaults(options: ClusterOptions): Pick<ClusterChanges, 'launchDefaults'> {
  const { defaultSize, defaultMemory, defaultVcpus, defaultNet, defaultNetwork } = options;
  if (defaultNet !== undefined && defaultNetwork !== undefined) {
    throw new AppError('USAGE', '--default-net and --default-network say the same', {
      hint: 'give one of them',
    });
  }
  const read = <T>(text: string | undefined, parse: (text: string) => T): T | null | undefined =>
    text === undefined ? undefined : text === 'default' ? null : parse(text);
  const given = Object.entries({
    diskBytes: read(defaultSize, (text) => parseSizeBytes('--default-size', text)),
    memoryMiB: read(defaultMemory, (text) => parseSizeMiB('--default-memory', text)),
    vcpus: read(defaultVcpus, (text) => {
      if (/^\d{1,3}$/.test(text) && Number(text) > 0) return Number(text);
      throw new AppError('USAGE', `option --default-vcpus: '${text}' is no number of processors`, {
        hint: 'write a whole number from 1 to 255, or default',
      });
    }),
    net: read(defaultNet, (text) => {
      if (text !== 'none') parseNics([`0:${text}`], createValueSource());
      return text;
    }),
    ...(defaultNetwork !== undefined && {
      net: read(defaultNetwork, (text) => `network=${text},ip=pool`),
    }),
  }).filter(([, value]) => value !== undefined);
  return given.length === 0 ? {} : { launchDefaults: Object.fromEntries(given) };
}

/** PEM certificates, of `@FILE` or as they are; null takes them back. */
function readCa(text: string, values: ValueSource): string | null {
  return orTakenBack(values.resolve('--image-ca', text)) ?? null;
}

/** `NAME=URL`; taken back as a service is. The URL is judged by the node. @throws AppError USAGE */
function parseMirrors(texts: readonly string[]): Record<string, string | null> {
  return Object.fromEntries(parseRemovable('--package-mirror', texts));
}

/**
 * `NAME=@FILE` or `NAME=KEY`; taken back as a service is. @throws AppError USAGE, FILE_UNREADABLE
 */
function parseImageKeys(
  texts: readonly string[],
  values: ValueSource,
): Record<string, string | null> {
  const given = texts.map((text): [string, string | null] => {
    const [, name = '', file] = /^([^=]+)=@(.*)$/s.exec(text) ?? [];
    if (file !== undefined) return [name, values.readText('--image-key', file)];
    const [pair] = parseRemovable('--image-key', [text]);
    return pair ?? [text, null];
  });
  return Object.fromEntries(given);
}

/** `gnt-cluster info`. @throws CommandFailure */
export async function runClusterInfo(
  context: Context,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const cluster = await client.cluster();
  if (options.json) {
    context.print(JSON.stringify(cluster, null, 2));
    return;
  }
  const limits = downloadLimitsOf(cluster);
  const services = Object.entries(cluster.exposeServices).map(([key, service]) => ({
    key,
    value: `${service.protocol === 'udp' ? 'UDP port' : 'port'} ${service.port} goes to ${'socketPath' in service ? service.socketPath : `${service.host}:${service.hostPort}`}`,
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
      key: 'Limit for installations',
      value: cluster.installTimeoutS === 0 ? 'none' : `${cluster.installTimeoutS} s`,
    },
    { key: 'Scripts on the host', value: cluster.hostScripts },
    { key: 'Appliance', value: cluster.appliance ?? BUILT_APPLIANCE },
    { key: 'Default OS', value: cluster.defaultOs ?? 'none' },
    { key: 'Disk of launch', value: formatBytes(cluster.launchDefaults?.diskBytes ?? 10 * GIB) },
    {
      key: 'Memory and processors of launch',
      value: `${cluster.launchDefaults?.memoryMiB ?? 'usual'} MiB, ${cluster.launchDefaults?.vcpus ?? 'usual'}`,
    },
    { key: 'Network of launch', value: cluster.launchDefaults?.net ?? 'mode=user' },
    { key: 'Folder for shared disks', value: cluster.sharedFileStorageDir ?? 'none' },
    { key: 'Volume group', value: cluster.vgName ?? 'none' },
    { key: 'ZFS pool', value: cluster.zfsPool ?? 'none' },
    { key: 'Warns of low space', value: describeLowSpace(cluster) },
    {
      key: 'Folders for the remote API',
      value: (cluster.remoteFolders ?? []).join(', ') || 'none',
    },
    {
      key: 'Hosts for the remote API',
      value: ['the internet', ...(cluster.remoteHosts ?? [])].join(', '),
    },
    { key: 'Largest image', value: formatBytes(limits.maxImageBytes) },
    {
      key: 'Limit for downloads',
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
      key: 'Keys for images and packages',
      value: keys.length === 0 ? 'none: they need no signature' : `${keys.length}`,
      children: keys,
    },
    {
      key: 'Authorities for images and packages',
      value: `the system's${cluster.imageCa === undefined ? '' : ', and those of --image-ca'}`,
    },
    {
      key: 'Package mirrors',
      value: mirrors.length === 0 ? null : `${mirrors.length}`,
      children: mirrors,
    },
  ]);
  context.print(lines.join('\n'));
}

function describeLowSpace({
  lowSpacePercent = DEFAULT_LOW_SPACE_PERCENT,
}: Pick<ClusterRecord, 'lowSpacePercent'>): string {
  return lowSpacePercent === 0 ? 'never' : `below ${lowSpacePercent} % of a file system`;
}

function findingOfNode(node: ListedNode): DoctorReport['findings'] {
  if (!('silent' in node)) return [];
  const { name, silent } = node;
  if (node.flags.offline)
    return [{ check: `node ${name}`, level: 'warning', message: silent, hint: null }];
  const hint = `start gnt-noded there; if it is gone for good: gnt-node remove ${name}`;
  return [{ check: `node ${name}`, level: 'error', message: silent, hint }];
}

/**
 * `gnt-cluster verify`: the node's own checks, and what the instances say of themselves. Exit 1
 * when something is wrong.
 */
export async function runClusterVerify(
  context: Context,
  options: { readonly json?: boolean },
): Promise<void> {
  const client = await context.client();
  const [cluster, report, nodes, instances] = await Promise.all([
    client.cluster(),
    client.doctor(),
    client.nodes(),
    client.instances(),
  ]);
  const WRONG = new Set([
    ...['paused', 'ERROR_down', 'ERROR_up', 'install_failed'],
    ...['ERROR_nodedown', 'ERROR_nodefails', 'ERROR_nodeoffline'],
  ]);
  const findings: DoctorReport['findings'] = [
    ...report.findings,
    ...nodes.flatMap(findingOfNode),
    ...instances
      .filter(({ status }) => WRONG.has(status))
      .map(({ name, status, explanation }) => ({
        check: `instance ${name}`,
        level: 'error' as const,
        message: `${status}: ${explanation}`,
        hint: `see: gnt-instance info ${name}`,
      })),
  ];
  const whole = { ok: report.ok && !findings.some(({ level }) => level === 'error'), findings };
  if (options.json) context.print(JSON.stringify({ cluster: cluster.name, ...whole }, null, 2));
  else {
    context.print(
      `cluster ${cluster.name}: ${cluster.nodes.length} node(s), ${instances.length} instance(s)`,
    );
    for (const line of renderFindings(whole, context.terminal.output)) context.print(line);
  }
  if (!whole.ok) context.setExitStatus(1);
}
