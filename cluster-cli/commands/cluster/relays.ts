import type { ClusterInfo } from '#shared/contract/api.ts';
import type { OpcodeOf } from '#shared/contract/opcode.ts';
import {
  DEFAULT_RELAY_BYTES,
  DEFAULT_RELAY_METHODS,
  DEFAULT_RELAY_RATE,
  DEFAULT_RELAY_TIMEOUT_S,
  RELAY_METHODS,
  relayName,
  type RelayAuth,
  type RelaySettings,
} from '#shared/contract/relay.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue, setOwn } from '#shared/json/own-value.ts';
import { formatBytes } from '../../render/format.ts';
import type { OutlineEntry } from '../../render/outline.ts';
import type { Context } from '../../terminal/context.ts';
import { promptHidden } from '../../terminal/prompt.ts';
import { type KeyValue, parseKeyValues } from '../../values/key-values.ts';
import { parseSizeBytes } from '../../values/size.ts';
import { NONE } from '../instance/parse-documents.ts';

type Relays = NonNullable<OpcodeOf<'CLUSTER_SET_PARAMS'>['relays']>;

const OPTION = '--relay';
const HINT =
  'Write --relay NAME=URL,auth=bearer, or NAME=none; keys: auth, access, methods, paths, rate, max-size, timeout';

/**
 * Parses `NAME=URL[,key=value…]`, which replaces a relay, and `NAME=none`, which removes it.
 * @throws AppError USAGE
 */
export function parseRelays(texts: readonly string[]): Relays {
  const relays: Relays = {};
  for (const text of texts) {
    const [first, ...settings] = parseKeyValues(OPTION, text);
    if (first === undefined) throw refuse(text, 'is not NAME=URL');
    if (!relayName.safeParse(first.key).success)
      throw refuse(first.key, 'is not a name of lower-case letters, digits and dashes');
    const isUnset = first.value.kind === 'unset' || textOf(first) === NONE;
    setOwn(relays, first.key, isUnset ? null : parseRelay(text, first, settings));
  }
  return relays;
}

function parseRelay(text: string, first: KeyValue, settings: readonly KeyValue[]): RelaySettings {
  const url = textOf(first);
  if (url === undefined) throw refuse(text, 'is not NAME=URL');
  const relay: RelaySettings = { url, auth: { kind: 'bearer' }, access: 'tagged' };
  for (const setting of settings) {
    const value = textOf(setting);
    const set = ownValue(SETTINGS, setting.key);
    if (value === undefined || set === undefined)
      throw refuse(`${setting.key}${value === undefined ? '' : `=${value}`}`, 'is not a setting');
    set(relay, value);
  }
  return relay;
}

/** The node checks the values. */
const SETTINGS: Readonly<Record<string, (relay: RelaySettings, value: string) => void>> = {
  auth: (relay, value) => {
    relay.auth = parseAuth(value);
  },
  access: (relay, value) => {
    if (value !== 'tagged' && value !== 'all')
      throw refuse(`access=${value}`, 'is not tagged or all');
    relay.access = value;
  },
  methods: (relay, value) => {
    relay.methods = value.split('+').map((name) => {
      const method = RELAY_METHODS.find((known) => known === name.toUpperCase());
      if (method === undefined)
        throw refuse(`methods=${value}`, `has a method other than ${RELAY_METHODS.join(', ')}`);
      return method;
    });
  },
  paths: (relay, value) => {
    relay.paths = value.split('+');
  },
  rate: (relay, value) => {
    relay.rate = parseCount('rate', value);
  },
  'max-size': (relay, value) => {
    relay.maxBytes = parseSizeBytes(`${OPTION} max-size`, value);
  },
  timeout: (relay, value) => {
    relay.timeoutS = parseCount('timeout', value);
  },
};

function parseAuth(value: string): RelayAuth {
  const colon = value.indexOf(':');
  const kind = colon === -1 ? value : value.slice(0, colon);
  const name = colon === -1 ? '' : value.slice(colon + 1);
  if (value === 'bearer') return { kind: 'bearer' };
  if (kind === 'basic' && name !== '') return { kind, user: name };
  if (kind === 'header' && name !== '') return { kind, name: name.toLowerCase() };
  if (kind === 'query' && name !== '') return { kind, name };
  throw refuse(`auth=${value}`, 'is not bearer, basic:USER, header:NAME or query:NAME');
}

function parseCount(key: string, value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw refuse(`${key}=${value}`, 'is not a whole number');
}

function textOf({ value }: KeyValue): string | undefined {
  return value.kind === 'text' && value.text !== '' ? value.text : undefined;
}

function refuse(text: string, problem: string): AppError {
  return new AppError('USAGE', `option ${OPTION}: '${text}' ${problem}`, { hint: HINT });
}

/** Returns the lines of `info`. */
export function describeRelays({
  relays = {},
  relaysWithoutSecret = [],
}: Pick<ClusterInfo, 'relays' | 'relaysWithoutSecret'>): OutlineEntry {
  const all = Object.entries(relays);
  return {
    key: 'Relays',
    value: all.length === 0 ? null : `${all.length}`,
    children: all.map(([name, relay]) => ({
      key: name,
      value: relay.url,
      children: [
        { key: 'Secret', value: describeSecret(name, relaysWithoutSecret) },
        { key: 'Sent as', value: describeAuth(relay.auth) },
        { key: 'Instances', value: relay.access === 'all' ? 'all' : `with tag gnt:relay=${name}` },
        { key: 'Methods', value: (relay.methods ?? DEFAULT_RELAY_METHODS).join(', ') },
        { key: 'Paths', value: relay.paths?.join(', ') ?? 'all' },
        { key: 'Limits of an instance', value: describeLimits(relay) },
      ],
    })),
  };
}

function describeSecret(name: string, missing: readonly string[]): string {
  return missing.includes(name)
    ? `missing on this node: gnt-cluster set-relay-secret ${name}`
    : 'in the memory of this node';
}

function describeAuth(auth: RelayAuth): string {
  switch (auth.kind) {
    case 'bearer':
      return 'Authorization: Bearer';
    case 'basic':
      return `Authorization: Basic, user ${auth.user}`;
    case 'header':
      return `header ${auth.name}`;
    case 'query':
      return `query parameter ${auth.name}`;
  }
}

function describeLimits({ rate, maxBytes, timeoutS }: RelaySettings): string {
  return [
    `${rate ?? DEFAULT_RELAY_RATE} requests per minute`,
    `${formatBytes(maxBytes ?? DEFAULT_RELAY_BYTES)} per body`,
    `${timeoutS ?? DEFAULT_RELAY_TIMEOUT_S} s per request`,
  ].join(', ');
}

/**
 * Gives the secret of a relay to the nodes. It comes from a prompt or stdin, never from the command
 * line.
 * @throws AppError NOT_FOUND, NODE_UNREACHABLE, VALIDATION
 */
export async function runSetRelaySecret(context: Context, name: string): Promise<void> {
  const { values, terminal } = context;
  const given = terminal.stdin.isTTY
    ? await promptHidden(context, `secret of relay ${name}: `)
    : values.readText('SECRET', '-');
  const client = await context.client();
  const { nodes, missing } = await client.ask('POST /v1/relays/{name}/secret', {
    ...{ name, body: { secret: given.replace(/\r?\n$/, '') } },
  });
  context.note(`the secret of relay ${name} is in the memory of ${nodes.join(', ')}`);
  if (missing.length === 0) return;
  const reasons = missing.map(({ node, reason }) => `${node} (${reason})`);
  throw new AppError('NODE_UNREACHABLE', `the secret did not reach ${reasons.join(', ')}`, {
    details: { nodes: missing.map(({ node }) => node) },
    hint: 'Repeat the command when these nodes answer.',
  });
}
