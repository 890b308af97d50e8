import {
  installEventBatch,
  MAX_EVENTS_BODY_BYTES,
  MAX_EVENTS_PER_BATCH,
} from '#shared/contract/install-event.ts';
import { countJsonValues } from '#shared/json/count-values.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { EventLog } from '../channel/event-log.ts';
import { parseTokenTtl } from '../channel/session-tokens.ts';
import type { Address } from '../dialects/address.ts';
import { isDialectServed } from '../dialects/served-dialects.ts';
import {
  EVENTS_PER_REQUEST_TOKEN,
  EVENT_BYTES_PER_REQUEST_TOKEN,
  MAX_PASSWORD_BYTES,
  MAX_READY_BYTES,
  RETRY_AFTER_S,
} from '../config/limits.ts';
import { describeIssue } from '../view/validation-message.ts';
import type { ServedView } from '../view/served-view.ts';
import type { Exchange } from './exchange.ts';
import { bootEvents, bootStatus } from './boot-actions.ts';
import { bodyOf, readBody } from './request-body.ts';
import { readHostKeys } from './host-keys-form.ts';
import { hasUnreadBody, sendEmpty, sendText } from './reply.ts';
import { serveQueueWrite } from './serve-queue.ts';

/** An event has a few fields, and a result as many numbers as there are dumps. */
const MAX_VALUES_PER_BATCH = MAX_EVENTS_PER_BATCH * 32;

/** Something that a guest does at a path, beside reading. */
export interface Action {
  readonly method: 'POST' | 'PUT';
  perform(exchange: Exchange, events: EventLog): Promise<void> | void;
}

const ACTIONS: Readonly<Record<string, Action>> = {
  'ganeti write': { method: 'POST', perform: write },
  'ganeti ready': { method: 'POST', perform: ready },
  'ganeti boot/events': { method: 'POST', perform: bootEvents },
  'ganeti boot/status': { method: 'POST', perform: bootStatus },
  'ganeti install/events': { method: 'POST', perform: installEvents },
  'ec2 api/token': { method: 'PUT', perform: createToken },
  'openstack password': { method: 'POST', perform: postPassword },
};

export function isTokenPath(address: Address): boolean {
  return address.kind === 'entry' && address.dialect === 'ec2' && address.path === 'api/token';
}

export function findAction(view: ServedView, address: Address): Action | undefined {
  if (address.kind !== 'entry') return undefined;
  // Where tokens are required, there is nothing to read without one, whichever dialects there are.
  const isNeeded = view.metadataToken === 'required' && isTokenPath(address);
  if (!isNeeded && !isDialectServed(view, address.dialect)) return undefined;
  if (address.path === 'install/events' && view.mode !== 'install') return undefined;
  const key = `${address.dialect} ${address.path}`;
  return Object.hasOwn(ACTIONS, key) ? ACTIONS[key] : undefined;
}

async function write({ instance, request, response }: Exchange, events: EventLog): Promise<void> {
  const bytes = await serveQueueWrite(instance.toHost, request, response);
  if (bytes > 0) events.append(instance.view.uuid, { type: 'written', bytes });
}

/** cloud-init's phone_home posts a form; anything that fits is taken as it is. */
async function ready(exchange: Exchange, events: EventLog): Promise<void> {
  const body = await bodyOf(exchange, MAX_READY_BYTES);
  if (!body) return;
  const agent = exchange.request.headers['user-agent'] ?? '';
  const source = agent.startsWith('Cloud-Init/') ? 'cloud-init' : 'guest';
  const text = body.toString('utf8').slice(0, 4096);
  events.append(exchange.instance.view.uuid, { type: 'ready', source, text });
  const keys = readHostKeys(body);
  if (keys !== null) events.append(exchange.instance.view.uuid, { type: 'host-keys', ...keys });
  sendEmpty(exchange.response, 204);
}

/**
 * One batch at a time: what of several is held, and parsed in one turn, would be bounded by the
 * guest's connections alone.
 */
async function installEvents(exchange: Exchange, events: EventLog): Promise<void> {
  const { instance } = exchange;
  if (instance.isReporting) return refuseBatch(exchange, 'another batch is on its way');
  instance.isReporting = true;
  try {
    await takeBatch(exchange, events);
  } finally {
    instance.isReporting = false;
  }
}

async function takeBatch(exchange: Exchange, events: EventLog): Promise<void> {
  const { instance, response } = exchange;
  // The installation that this report belongs to is the one that was going on when the request
  // came.
  const installId = instance.view.install?.plan.installId;
  const body = await bodyOf(exchange, MAX_EVENTS_BODY_BYTES);
  if (!body) return;
  if (installId === undefined) return sendText(response, 404, 'not found');
  const bytesCost = Math.floor(body.length / EVENT_BYTES_PER_REQUEST_TOKEN);
  if (instance.charge(bytesCost) > 0) return refuseBatch(exchange, 'too many bytes');
  // Before anything is made of it: a hundred thousand empty objects take the parser, and then the
  // collector, the time of a hundred requests.
  if (countJsonValues(body, MAX_VALUES_PER_BATCH) > MAX_VALUES_PER_BATCH)
    return sendText(response, 400, `(top level): at most ${MAX_EVENTS_PER_BATCH} events at once`);
  const value = parseJson(body);
  if (value === undefined) return sendText(response, 400, '(top level): not JSON');
  // Before each of them is looked at.
  if (Array.isArray(value) && value.length > MAX_EVENTS_PER_BATCH)
    return sendText(response, 400, `(top level): at most ${MAX_EVENTS_PER_BATCH} events at once`);
  const batch = installEventBatch.safeParse(value);
  if (!batch.success) return sendText(response, 400, describeIssue(batch.error));
  const eventsCost = Math.floor(batch.data.length / EVENTS_PER_REQUEST_TOKEN);
  if (instance.charge(eventsCost) > 0) return refuseBatch(exchange, 'too many events');
  instance.hearAgent(installId, batch.data);
  for (const event of batch.data) {
    events.append(instance.view.uuid, { type: 'install', installId, event });
  }
  sendEmpty(response, 204);
}

function refuseBatch({ response }: Exchange, reason: string): void {
  sendText(response, 429, reason, ['Retry-After', String(RETRY_AFTER_S)]);
}

function createToken({ instance, request, response }: Exchange): void {
  if (hasUnreadBody(request)) return sendText(response, 400, 'this request has no body');
  const header = request.headers['x-aws-ec2-metadata-token-ttl-seconds'];
  const ttl = parseTokenTtl(typeof header === 'string' ? header : undefined);
  if (ttl === null) {
    return sendText(
      response,
      400,
      'X-aws-ec2-metadata-token-ttl-seconds: give a whole number from 1 to 21600',
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

/** Nova's rule: the first password stays. */
async function postPassword(exchange: Exchange): Promise<void> {
  const { instance, response } = exchange;
  const body = await readBody(exchange.request, MAX_PASSWORD_BYTES);
  if (body.kind === 'aborted') return;
  if (body.kind === 'too-large') {
    sendText(response, 400, 'the request is too large');
    return;
  }
  if (instance.password !== '') return sendText(response, 409, 'a password was posted already');
  instance.setPassword(body.bytes.toString('utf8'));
  sendEmpty(response, 200, ['Content-Length', '0']);
}
