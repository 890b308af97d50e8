import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { MAX_RELAY_STREAMS } from '#shared/contract/metad-control.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { OpenRelay, RelayAnswer } from '../relay/relays.ts';
import type { GuestLines } from './guest-lines.ts';
import { refuse } from './refuse.ts';

export interface RelaySenderDependencies {
  readonly openRelay: OpenRelay;
  readonly audit: GuestLines;
  readonly failures: GuestLines;
  readonly clock: Clock;
}

/** Characters of a path in the log. */
const MAX_LOGGED_PATH = 256;

/** Answers metad's requests for relays, of any method, and logs each one. */
export class RelaySender {
  readonly #dependencies: RelaySenderDependencies;
  readonly #slots = new InstanceSlots(MAX_RELAY_STREAMS);

  constructor(dependencies: RelaySenderDependencies) {
    this.#dependencies = dependencies;
  }

  /** @param target `NAME/PATH?QUERY` as the guest wrote it */
  async send(
    uuid: string,
    target: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { openRelay, audit, failures, clock } = this.#dependencies;
    // An answer may come before the end of the body. Closing the connection with unread bytes would
    // reset it, and metad would lose the answer.
    response.shouldKeepAlive = true;
    const startedAtMs = clock.monotonicMs();
    const slash = target.indexOf('/');
    const name = slash === -1 ? target : target.slice(0, slash);
    const below = slash === -1 ? '' : target.slice(slash + 1);
    const { method = '' } = request;
    const fields = { relay: name.slice(0, 32), method, path: pathOf(below) };
    const giveBack = this.#slots.take(uuid);
    if (!giveBack) return refuse(response, 503, 'too many concurrent requests to relays');
    const gone = new AbortController();
    response.on('close', () => {
      giveBack();
      gone.abort(new Error('the instance disconnected'));
    });
    let answer: RelayAnswer | undefined;
    let failure: string | undefined;
    try {
      answer = await openRelay(uuid, name, {
        ...{ method, target: below, headers: request.rawHeaders, signal: gone.signal },
        body: bodyOf(request),
      });
      if (answer.kind === 'refusal') failure = answer.cause ?? answer.reason;
      await sendAnswer(answer, method, response);
    } catch (error) {
      failure = messageOf(error);
      // The reader must not take a failure for the end of the answer.
      response.destroy();
    } finally {
      const usage = answer?.kind === 'answer' ? answer.ended() : { sent: 0, received: 0 };
      const tookMs = Math.round(clock.monotonicMs() - startedAtMs);
      const status = response.headersSent ? response.statusCode : null;
      audit.info(uuid, 'relay.request', { ...fields, status, ...usage, tookMs, failure });
    }
    const isServers = answer?.kind === 'answer' || (answer?.status ?? 0) >= 500;
    if (failure !== undefined && isServers)
      failures.warn(uuid, 'relay.failed', { ...fields, reason: failure });
  }
}

async function sendAnswer(
  answer: RelayAnswer,
  method: string,
  response: ServerResponse,
): Promise<void> {
  if (answer.kind === 'refusal')
    return refuse(response, answer.status, answer.reason, answer.headers);
  response.writeHead(answer.status, [...answer.headers]);
  if (method === 'HEAD' || answer.status === 204 || answer.status === 304) {
    answer.body.destroy();
    response.end();
    return;
  }
  // The guest waits for the status, even if the first byte of the body comes much later.
  response.flushHeaders();
  await pipeline(answer.body, response);
}

function bodyOf(
  request: IncomingMessage,
): { stream: IncomingMessage; length: number | undefined } | null {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if (encoding !== undefined) return { stream: request, length: undefined };
  if (length === undefined || Number(length) === 0) return null;
  return { stream: request, length: Number(length) };
}

/** Leaves out the query, which may contain secrets. */
function pathOf(target: string): string {
  const [path = ''] = target.split('?', 1);
  return `/${path.slice(0, MAX_LOGGED_PATH)}`;
}
