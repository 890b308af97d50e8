import type { NetworkConnection, NetworkInfo } from '#shared/contract/network.ts';
import type { OpcodeInput } from '#shared/contract/opcode.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { networkFields } from '../../fields/other-fields.ts';
import { type OutlineEntry, renderOutline } from '../../render/outline.ts';
import type { Context } from '../../terminal/context.ts';
import { parseList } from '../../values/key-values.ts';
import { type ListOptions, printFields, printList } from '../list.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

export async function runNetworkList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const items = await (await context.client()).ask('GET /v1/networks');
  printList(
    context,
    {
      table: networkFields,
      items,
      nameOf: (network) => network.name,
      names,
      notFound: (name) => networkNotFound(name, items),
      toJson: (network) => ({ ...network }),
      defaultSort: 'name',
    },
    options,
  );
}

export function runNetworkListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, networkFields, options);
}

export async function runNetworkInfo(
  context: Context,
  names: readonly string[],
  options: { readonly json?: boolean },
): Promise<void> {
  const all = await (await context.client()).ask('GET /v1/networks');
  const shown = names.length === 0 ? all : names.map((name) => find(name, all));
  if (options.json) {
    context.print(JSON.stringify(names.length === 1 ? shown[0] : shown, null, 2));
    return;
  }
  context.print(shown.map((network) => renderOutline(describe(network)).join('\n')).join('\n\n'));
}

export async function runNetworkListTags(context: Context, name: string): Promise<void> {
  const { tags } = find(name, await (await context.client()).ask('GET /v1/networks'));
  for (const tag of tags.toSorted()) context.print(tag);
}

export interface NetworkOptions extends SubmitOptions {
  readonly network?: string;
  readonly gateway?: string;
  readonly macPrefix?: string;
  readonly addReservedIps?: string;
  readonly removeReservedIps?: string;
  readonly tags?: string;
}

export async function runNetworkAdd(
  context: Context,
  name: string,
  options: NetworkOptions & { readonly network: string },
): Promise<void> {
  const { network, gateway, macPrefix, addReservedIps, tags } = options;
  const opcode: OpcodeInput = {
    ...{ opcode: 'NETWORK_ADD', name, network, gateway },
    macPrefix: macPrefix?.toLowerCase(),
    addReserved: listOf(addReservedIps),
    tags: listOf(tags),
  };
  await change(context, opcode, options, `network ${name} added; it is connected to no node yet`);
}

export async function runNetworkModify(
  context: Context,
  name: string,
  options: NetworkOptions,
): Promise<void> {
  const { gateway, macPrefix, addReservedIps, removeReservedIps } = options;
  if ([gateway, macPrefix, addReservedIps, removeReservedIps].every((one) => one === undefined)) {
    throw new AppError('USAGE', 'no change given', {
      hint: 'Give --gateway, --mac-prefix, --add-reserved-ips or --remove-reserved-ips',
    });
  }
  const opcode: OpcodeInput = {
    ...{ opcode: 'NETWORK_SET_PARAMS', name },
    gateway: orNone(gateway),
    macPrefix: orNone(macPrefix?.toLowerCase()),
    addReserved: listOf(addReservedIps),
    removeReserved: listOf(removeReservedIps),
  };
  await change(context, opcode, options, `network ${name} modified`);
}

/** Runs `gnt-network add-tags` and `remove-tags`. */
export async function runNetworkTags(
  context: Context,
  name: string,
  tags: { readonly addTags: string[] } | { readonly removeTags: string[] },
  options: SubmitOptions,
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'NETWORK_SET_PARAMS', name, ...tags };
  await change(context, opcode, options, `tags of network ${name} changed`);
}

export async function runNetworkConnect(
  context: Context,
  name: string,
  words: readonly string[],
  options: SubmitOptions,
): Promise<void> {
  const { nodes, connection } = parseConnection(name, words);
  const opcode: OpcodeInput = { opcode: 'NETWORK_CONNECT', name, nodes, connection };
  await change(context, opcode, options, `network ${name} connected`);
}

export async function runNetworkDisconnect(
  context: Context,
  name: string,
  nodes: readonly string[],
  options: SubmitOptions,
): Promise<void> {
  const opcode: OpcodeInput = { opcode: 'NETWORK_DISCONNECT', name, nodes: [...nodes] };
  await change(context, opcode, options, `network ${name} disconnected`);
}

export async function runNetworkRemove(
  context: Context,
  name: string,
  options: SubmitOptions,
): Promise<void> {
  await change(context, { opcode: 'NETWORK_REMOVE', name }, options, `network ${name} is removed`);
}

/**
 * Parses `[NODE…] bridged LINK|nat`: Ganeti's syntax, with nodes instead of groups. Pure.
 * @throws AppError USAGE
 */
export function parseConnection(
  name: string,
  words: readonly string[],
): { readonly nodes: string[]; readonly connection: NetworkConnection } {
  const at = words.findIndex((word) => word === 'bridged' || word === 'nat');
  const [mode, link, ...more] = at === -1 ? [] : words.slice(at);
  const nodes = words.slice(0, Math.max(at, 0));
  if (mode === 'nat' && link === undefined) return { nodes, connection: { mode } };
  if (mode === 'bridged' && link !== undefined && more.length === 0)
    return { nodes, connection: { mode, link } };
  const fault =
    mode === undefined
      ? 'bridged or nat is missing'
      : mode === 'nat'
        ? `unexpected ${link ?? ''} after nat`
        : link === undefined
          ? 'the bridge is missing'
          : `unexpected ${more.join(' ')} after the bridge`;
  throw new AppError('USAGE', `connect ${name}: ${fault}`, {
    hint: `Write gnt-network connect ${name} [NODES] bridged BRIDGE, or gnt-network connect ${name} [NODES] nat`,
  });
}

async function change(
  context: Context,
  opcode: OpcodeInput,
  options: SubmitOptions,
  done: string,
): Promise<void> {
  const job = await submitAndWatch(context, opcode, options);
  if (job !== null && !options.json) context.note(done);
}

function find(name: string, all: readonly NetworkInfo[]): NetworkInfo {
  const found = all.find((network) => network.name === name);
  if (found !== undefined) return found;
  throw networkNotFound(name, all);
}

function describe(network: NetworkInfo): OutlineEntry[] {
  const { name, uuid, free, size, connections, reserved, addresses, tags } = network;
  return [
    { key: 'Network name', value: name },
    { key: 'UUID', value: uuid },
    { key: 'Subnet', value: network.network },
    { key: 'Gateway', value: network.gateway ?? 'none' },
    { key: 'Mac Prefix', value: network.macPrefix ?? 'none' },
    { key: 'Size', value: size },
    { key: 'Free', value: `${free} (${((free * 100) / size).toFixed(2)}%)` },
    { key: 'Tags', value: tags.join(', ') || 'none' },
    { key: 'Reserved', value: reserved.join(', ') || 'none' },
    {
      key: 'Connected to',
      ...(Object.keys(connections).length === 0 && { value: 'no node' }),
      children: Object.entries(connections).map(([key, connection]) => ({
        key,
        value: connection.mode === 'nat' ? 'nat' : `bridged, ${connection.link}`,
      })),
    },
    {
      key: 'Used by',
      ...(addresses.length === 0 && { value: 'no instance' }),
      children: addresses.map(({ ip, instance }) => ({ key: ip, value: instance })),
    },
  ];
}

function listOf(text: string | undefined): string[] {
  return text === undefined ? [] : [...parseList(text)].map((word) => word.trim());
}

function orNone(text: string | undefined): string | null | undefined {
  return text === 'none' ? null : text;
}

function networkNotFound(name: string, known: readonly NetworkInfo[]): AppError {
  const near = suggest(
    name,
    known.map((network) => network.name),
  );
  return new AppError('NOT_FOUND', `network '${name}' does not exist`, {
    hint: near === null ? 'gnt-network list shows the networks' : `Did you mean ${near}?`,
    details: { name },
  });
}
