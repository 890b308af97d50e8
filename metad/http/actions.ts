import { hostKey, loginUser, MAX_HOST_KEYS } from '#shared/contract/host-keys.ts';
import {
  installEventBatch,
  MAX_EVENTS_BODY_BYTES,
  MAX_EVENTS_PER_BATCH,
} from '#shared/contract/install-event.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { EventLog } from '../channel/event-log.ts';
import { parseTokenTtl } from '../channel/session-tokens.ts';
import {
  EVENTS_PER_REQUEST_TOKEN,
  MAX_GUEST_ATTRIBUTE_BYTES,
  MAX_GUEST_ATTRIBUTES,
  MAX_PASSWORD_BYTES,
  MAX_READY_BYTES,
} from '../config/limits.ts';
import type { Address } from '../dialects/address.ts';
import { FLAVOR_HEADER } from '../dialects/metadata-flavor.ts';
import { isDialectServed } from '../dialects/served-dialects.ts';
import type { ServedView } from '../view/served-view.ts';
import { describeIssue } from '../view/validation-message.ts';
import { bootEvents, bootStatus } from './boot-actions.ts';
import type { Exchange } from './exchange.ts';
import { lifecycleEvents, lifecycleOutput } from './lifecycle-actions.ts';
import { hasUnreadBody, sendEmpty, sendText } from './reply.ts';
import { readBody } from './request-body.ts';
import { serveQueueWrite } from './serve-queue.ts';
import { acknowledge, isPaid, takeReport } from './take-report.ts';

/** An event has a few fields, and a result has one number for each dump. */
const MAX_VALUES_PER_BATCH = MAX_EVENTS_PER_BATCH * 32;

type Perform = (exchange: Exchange, events: EventLog, path: string) => Promise<void> | void;
/** Changes at one path, by method. */
export type Actions = Readonly<Partial<Record<'POST' | 'PUT' | 'DELETE', Perform>>>;

/** The namespace and the key of an attribute of Google's are the guest's choice. */
const ATTRIBUTE = /^instance\/guest-attributes\/([\w-]{1,128})\/(?!\.+$)([\w.-]{1,128})$/;
const ATTRIBUTE_KEY = 'gce instance/guest-attributes/NAMESPACE/KEY';

const ACTIONS: Readonly<Record<string, Actions>> = {
  'ganeti write': { POST: write },
  'ganeti ready': { POST: ready },
  'ganeti boot/events': { POST: bootEvents },
  'ganeti boot/status': { POST: bootStatus },
  'ganeti install/events': { POST: installEvents },
  'ganeti lifecycle/events': { POST: lifecycleEvents },
  'ganeti lifecycle/output': { POST: lifecycleOutput },
  'ec2 api/token': { PUT: createToken },
  [ATTRIBUTE_KEY]: { PUT: putAttribute, DELETE: deleteAttribute },
  'openstack password': { POST: postPassword },
};

/** Dialect and path of each action, and its methods. */
export const ACTION_METHODS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(ACTIONS).map(([key, actions]) => [key, Object.keys(actions)]),
);

export function isTokenPath(address: Address): boolean {
  return address.kind === 'entry' && address.dialect === 'ec2' && address.path === 'api/token';
}

export function findActions(view: ServedView, address: Address): Actions | undefined {
  if (address.kind !== 'entry') return undefined;
  // A guest must get a token where tokens are required, even if the EC2 dialect is off.
  const isNeeded = view.metadataToken === 'required' && isTokenPath(address);
  if (!isNeeded && !isDialectServed(view, address.dialect)) return undefined;
  if (address.path === 'install/events' && view.mode !== 'install') return undefined;
  if (address.path.startsWith('lifecycle/') && !view.lifecycle) return undefined;
  const isAttribute = address.dialect === 'gce' && ATTRIBUTE.test(address.path);
  return ownValue(ACTIONS, isAttribute ? ATTRIBUTE_KEY : `${address.dialect} ${address.path}`);
}

async function write({ instance, request, response }: Exchange, events: EventLog): Promise<void> {
  const bytes = await serveQueueWrite(instance.toHost, request, response);
  if (bytes > 0) events.append(instance.view.uuid, { type: 'written', bytes });
}

const READY = { name: 'ready', maxBytes: MAX_READY_BYTES, values: null } as const;

/**
 * Records that the guest is ready. cloud-init's phone_home posts a form; any text that fits is
 * stored.
 */
async function ready(exchange: Exchange, events: EventLog): Promise<void> {
  await takeReport(exchange, READY, (body) => {
    const { uuid } = exchange.instance.view;
    const agent = exchange.request.headers['user-agent'] ?? '';
    const source = agent.startsWith('Cloud-Init/') ? 'cloud-init' : 'guest';
    const text = body.toString('utf8').slice(0, 4096);
    events.append(uuid, { type: 'ready', source, text });
    const keys = readHostKeys(body);
    if (keys !== null) events.append(uuid, { type: 'host-keys', ...keys });
    return acknowledge(exchange, events);
  });
}

const TOO_MANY_EVENTS = `(top level): more than ${MAX_EVENTS_PER_BATCH} events`;
const BATCH = {
  name: 'install events',
  maxBytes: MAX_EVENTS_BODY_BYTES,
  values: { max: MAX_VALUES_PER_BATCH, refusal: TOO_MANY_EVENTS },
} as const;

async function installEvents(exchange: Exchange, events: EventLog): Promise<void> {
  // The report belongs to the installation that ran when the request arrived.
  const installId = exchange.instance.view.install?.plan.installId;
  if (installId === undefined) return sendText(exchange.response, 404, 'not found');
  await takeReport(exchange, BATCH, (body) => takeBatch(exchange, events, installId, body));
}

function takeBatch(
  exchange: Exchange,
  events: EventLog,
  installId: string,
  body: Buffer,
): Promise<void> | void {
  const { instance, response } = exchange;
  const value = parseJson(body);
  if (value === undefined) return sendText(response, 400, '(top level): not JSON');
  // Checked before zod looks at each element.
  if (Array.isArray(value) && value.length > MAX_EVENTS_PER_BATCH)
    return sendText(response, 400, TOO_MANY_EVENTS);
  const batch = installEventBatch.safeParse(value);
  if (!batch.success) return sendText(response, 400, describeIssue(batch.error));
  if (!isPaid(exchange, batch.data.length / EVENTS_PER_REQUEST_TOKEN, 'events')) return;
  instance.hearAgent(installId, batch.data);
  for (const event of batch.data) {
    events.append(instance.view.uuid, { type: 'install', installId, event });
  }
  return acknowledge(exchange, events);
}

function createToken({ instance, request, response }: Exchange): void {
  if (hasUnreadBody(request)) return sendText(response, 400, 'this request must not have a body');
  const header = request.headers['x-aws-ec2-metadata-token-ttl-seconds'];
  const ttl = parseTokenTtl(typeof header === 'string' ? header : undefined);
  if (ttl === null) {
    return sendText(
      response,
      400,
      'X-aws-ec2-metadata-token-ttl-seconds: expected a whole number from 1 to 21600',
    );
  }
  const token = instance.tokens.create(ttl);
  response.writeHead(200, [
    'Content-Type',
    'text/plain',
    'Content-Length',
    String(token.length),
    'Cache-Control',
    'no-store',
    'X-aws-ec2-metadata-token-ttl-seconds',
    String(ttl),
  ]);
  response.end(token);
}

const ATTRIBUTE_BODY = {
  name: 'guest attribute',
  maxBytes: MAX_GUEST_ATTRIBUTE_BYTES,
  values: null,
} as const;

/** Stores a value of the guest. Google's guests publish the keys of their sshd in this way. */
async function putAttribute(exchange: Exchange, events: EventLog, path: string): Promise<void> {
  const [, namespace = '', key = ''] = ATTRIBUTE.exec(path) ?? [];
  await takeReport(exchange, ATTRIBUTE_BODY, (body) => {
    const { instance, response } = exchange;
    if (!instance.setGuestAttribute(namespace, key, body.toString('utf8').trim()))
      return sendText(response, 403, `an instance has at most ${MAX_GUEST_ATTRIBUTES} attributes`);
    instance.attributes.reportHostKeys(namespace, (written) => {
      const keys = written.filter((each) => hostKey.safeParse(each).success);
      if (keys.length === 0) return;
      events.append(instance.view.uuid, {
        type: 'host-keys',
        keys: keys.slice(0, MAX_HOST_KEYS).sort(),
        user: null,
      });
    });
    return sendEmpty(response, 200, ['Content-Length', '0', ...FLAVOR_HEADER]);
  });
}

function deleteAttribute(
  { instance, request, response }: Exchange,
  _: EventLog,
  path: string,
): void {
  if (hasUnreadBody(request)) return sendText(response, 400, 'this request must not have a body');
  const [, namespace = '', key = ''] = ATTRIBUTE.exec(path) ?? [];
  if (!instance.deleteGuestAttribute(namespace, key)) return sendText(response, 404, 'not found');
  return sendEmpty(response, 200, ['Content-Length', '0', ...FLAVOR_HEADER]);
}

/** Keeps the first password, as Nova does. */
async function postPassword(exchange: Exchange): Promise<void> {
  const { instance, response } = exchange;
  const body = await readBody(exchange.request, MAX_PASSWORD_BYTES);
  if (body.kind === 'aborted') return;
  if (body.kind === 'too-large') {
    sendText(response, 400, 'the request is too large');
    return;
  }
  if (instance.password !== '')
    return sendText(response, 409, 'a password has already been posted');
  instance.setPassword(body.bytes.toString('utf8'));
  sendEmpty(response, 200, ['Content-Length', '0']);
}

/** Limit of pairs in a form. phone_home posts about ten. */
const MAX_PAIRS = 64;

/**
 * Reads the SSH host keys that phone_home posts (`pub_key_ed25519=ssh-ed25519+AAAA…`), and
 * `login_user` of our own script. Other values are ignored: cloud-init writes `N/A` for missing
 * keys.
 * @returns null without any key
 */
export function readHostKeys(body: Buffer): { keys: string[]; user: string | null } | null {
  const form = new URLSearchParams(body.toString('utf8').split('&', MAX_PAIRS).join('&'));
  const keys = new Set<string>();
  for (const [name, value] of form) {
    // A comment after the key is the guest's own.
    const key = value.trim().split(/\s+/, 2).join(' ');
    if (!name.startsWith('pub_key_') || !hostKey.safeParse(key).success) continue;
    if (keys.size < MAX_HOST_KEYS) keys.add(key);
  }
  const user = loginUser.safeParse(form.get('login_user'));
  return keys.size === 0 ? null : { keys: [...keys].sort(), user: user.data ?? null };
}
