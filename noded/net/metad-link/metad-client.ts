import { Duplex } from 'node:stream';
import { z } from 'zod';
import { MAX_MESSAGE_BYTES } from '#shared/contract/channel-message.ts';
import { guestState, type GuestState } from '#shared/contract/guest-handover.ts';
import {
  LOST_SECRETS_HEADER,
  type MetadStatus,
  metadStatus,
  OFFSET_HEADER,
} from '#shared/contract/metad-control.ts';
import { osParameterName } from '#shared/contract/primitives.ts';
import type { InstanceView } from '#shared/contract/view.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ownValue } from '#shared/json/own-value.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { Secret } from '#shared/secret/secret.ts';
import type { ControlAnswer, ControlChannel, ControlRequest } from './control-request.ts';

export interface TreeAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface QueueRead {
  readonly bytes: Buffer;
  readonly nextOffset: number;
}

export interface MetadCalls {
  /**
   * @param isGuestUp the guest was started before, so that another metad may have served it
   * @returns the names of secrets whose values metad lacks
   * @throws AppError METAD_REFUSED naming the field, METAD_UNAVAILABLE
   */
  putView(view: InstanceView, isGuestUp?: boolean): Promise<readonly string[]>;
  deleteView(uuid: string): Promise<void>;
  status(): Promise<MetadStatus>;
  /**
   * Returns the guest's answer at a path, with secrets redacted.
   * @param isPartial omit lost secrets from leaves that contain them
   */
  tree(uuid: string, path: string, isPartial?: boolean): Promise<TreeAnswer>;
  /** Returns bytes that the guest wrote; null when there are none within `waitS` seconds. */
  readQueue(
    uuid: string,
    options?: {
      readonly offset?: number | undefined;
      readonly waitS?: number | undefined;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<QueueRead | null>;
  /**
   * @throws AppError CHANNEL_FULL (429 and 413), INSTANCE_NOT_FOUND when metad has no view of it
   */
  writeQueue(uuid: string, bytes: Uint8Array): Promise<void>;
  /**
   * Opens a raw stream to a TCP port of the guest.
   * @throws AppError GUEST_UNREACHABLE, INSTANCE_NOT_FOUND
   */
  connect(uuid: string, port: number, signal?: AbortSignal): Promise<Duplex>;
  /**
   * Revokes every session token of the instance's ec2 dialect.
   * @throws AppError INSTANCE_NOT_FOUND when metad has no view of it
   */
  replaceTokens(uuid: string): Promise<void>;
  /**
   * Returns the secret OS parameters that only this metad has, for the migration target.
   * @throws AppError INSTANCE_NOT_FOUND when metad has no view of it
   */
  secrets(uuid: string): Promise<ReadonlyMap<string, Secret>>;
  /**
   * Returns the state of a paused guest beside its view and its secrets, and freezes it.
   * @throws AppError INSTANCE_NOT_FOUND when metad has no view of it
   */
  leave(uuid: string): Promise<GuestState>;
  /** Cancels `leave`: the guest stays. @throws AppError as `leave` */
  stay(uuid: string): Promise<void>;
  /**
   * Gives an incoming guest the state that `leave` returned on its former node.
   * @throws AppError as `leave`
   */
  arrive(uuid: string, state: GuestState): Promise<void>;
  /** Returns Prometheus text. */
  metrics(): Promise<string>;
}

/** A dead-locked metad must not block a job for long. A loaded host must not fail a job. */
const STATUS_TIMEOUT_MS = 20_000;
const refusal = z.object({ code: z.string().max(64), message: z.string().max(4096) });

/** Creates noded's calls to metad (shared/contract/metad-control.ts). */
export function createMetadCalls(channel: ControlChannel): MetadCalls {
  /** Requests a part of an instance. `what` names it in errors. */
  const askPart = async (
    uuid: string,
    what: string,
    { part, ...request }: Omit<ControlRequest, 'path'> & { readonly part: string },
  ): Promise<ControlAnswer> => {
    const answer = await channel.ask({ ...request, path: `${instancePath(uuid)}/${part}` });
    if (isSuccess(answer)) return answer;
    throw failed(answer, uuid, what);
  };
  return {
    async putView(view, isGuestUp = false) {
      const answer = await channel.ask({
        method: 'PUT',
        path: `${instancePath(view.uuid)}${isGuestUp ? '?guest=up' : ''}`,
        ...jsonBody(view),
      });
      if (!isSuccess(answer)) throw refused(answer, `the view of ${view.name}`);
      const lost = ownValue(answer.headers, LOST_SECRETS_HEADER) ?? '';
      return z.array(osParameterName).parse(String(lost).split(',').filter(Boolean));
    },
    async deleteView(uuid) {
      const answer = await channel.ask({ method: 'DELETE', path: instancePath(uuid) });
      if (!isSuccess(answer)) throw refused(answer, `the removal of ${uuid}`);
    },
    status: () => askStatus(channel),
    async tree(uuid, path, isPartial = false) {
      const query = isPartial ? '?partial=true' : '';
      const answer = await channel.ask({ method: 'GET', path: treePath(uuid, path) + query });
      const contentType = answer.headers['content-type'] ?? 'text/plain';
      return { status: answer.status, contentType, body: answer.body };
    },
    async readQueue(uuid, { offset, waitS, signal } = {}) {
      const query = new URLSearchParams();
      if (offset !== undefined) query.set('offset', String(offset));
      if (waitS !== undefined) query.set('wait', String(waitS));
      const answer = await askPart(uuid, 'the queue', {
        method: 'GET',
        part: `queue?${query.toString()}`,
        timeoutMs: STATUS_TIMEOUT_MS + (waitS ?? 0) * 1000,
        signal,
      });
      if (answer.status === 204) return null;
      const nextOffset = Number(ownValue(answer.headers, OFFSET_HEADER.toLowerCase()) ?? 0);
      return { bytes: answer.body, nextOffset };
    },
    async writeQueue(uuid, bytes) {
      const answer = await channel.ask({
        method: 'POST',
        path: `${instancePath(uuid)}/queue`,
        headers: { 'content-type': 'application/octet-stream' },
        body: bytes,
      });
      if (answer.status === 413 || answer.status === 429) throw channelFull(answer, bytes.length);
      if (!isSuccess(answer)) throw failed(answer, uuid, 'the queue');
    },
    async connect(uuid, port, signal) {
      const path = `${instancePath(uuid)}/connect/${port}`;
      const answer = await channel.upgrade({ method: 'GET', path, signal });
      if (answer instanceof Duplex) return answer;
      if (answer.status === 404) throw notFound(uuid);
      throw new AppError('GUEST_UNREACHABLE', reasonOf(answer) || `port ${port} does not answer`, {
        details: { port, status: answer.status },
        hint: 'Check that the instance runs and that a service listens on that port on its channel address.',
      });
    },
    async replaceTokens(uuid) {
      await askPart(uuid, 'the new tokens', { method: 'DELETE', part: 'tokens' });
    },
    async secrets(uuid) {
      const { body } = await askPart(uuid, 'the secrets', { method: 'GET', part: 'secrets' });
      const values = z.record(z.string(), z.string()).parse(parseJson(body));
      return new Map(Object.entries(values).map(([name, value]) => [name, new Secret(value)]));
    },
    async leave(uuid) {
      const { body } = await askPart(uuid, "the guest's state", { method: 'POST', part: 'leave' });
      return guestState.parse(parseJson(body));
    },
    async stay(uuid) {
      const what = 'the confirmation that the guest stays';
      await askPart(uuid, what, { method: 'DELETE', part: 'leave' });
    },
    async arrive(uuid, state) {
      const what = "the guest's state from its former node";
      await askPart(uuid, what, { method: 'PUT', part: 'arrive', ...jsonBody(state) });
    },
    async metrics() {
      const answer = await channel.ask({ method: 'GET', path: '/metrics' });
      if (!isSuccess(answer)) throw refused(answer, 'the metrics');
      return answer.body.toString('utf8');
    },
  };
}

/** The control socket answers with another protocol: metad of another release. */
export class ForeignMetad extends AppError {
  constructor(status: number) {
    super(
      'METAD_UNAVAILABLE',
      'gnt-metad answered with a status that this program does not understand',
      {
        details: { status },
        hint: 'Stop gnt-metad. gnt-noded then starts its own version.',
      },
    );
  }
}

/** @throws AppError METAD_UNAVAILABLE; ForeignMetad for another protocol */
export async function askStatus(
  channel: ControlChannel,
  timeoutMs: number = STATUS_TIMEOUT_MS,
): Promise<MetadStatus> {
  const answer = await channel.ask({ method: 'GET', path: '/v1/status', timeoutMs });
  const parsed = metadStatus.safeParse(parseJson(answer.body));
  if (answer.status === 200 && parsed.success) return parsed.data;
  throw new ForeignMetad(answer.status);
}

function isSuccess({ status }: ControlAnswer): boolean {
  return status >= 200 && status < 300;
}

function jsonBody(value: unknown): Pick<ControlRequest, 'headers' | 'body'> {
  return {
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(value)),
  };
}

function instancePath(uuid: string): string {
  return `/v1/instances/${encodeURIComponent(uuid)}`;
}

function treePath(uuid: string, path: string): string {
  const segments = path.replace(/^\/+/, '').split('/').map(encodeURIComponent);
  return `${instancePath(uuid)}/tree/${segments.join('/')}`;
}

function reasonOf(answer: ControlAnswer): string {
  const parsed = refusal.safeParse(parseJson(answer.body));
  return parsed.success ? parsed.data.message : answer.body.toString('utf8').slice(0, 500).trim();
}

function refused(answer: ControlAnswer, what: string): AppError {
  return new AppError('METAD_REFUSED', `gnt-metad refused ${what}: ${reasonOf(answer)}`, {
    details: { status: answer.status },
  });
}

function failed(answer: ControlAnswer, uuid: string, what: string): AppError {
  return answer.status === 404 ? notFound(uuid) : refused(answer, what);
}

function notFound(uuid: string): AppError {
  return new AppError('INSTANCE_NOT_FOUND', `gnt-metad does not serve instance ${uuid}`, {
    details: { uuid },
    hint: 'Start the instance with its channel: gnt-instance modify --communication yes NAME, then gnt-instance reboot NAME',
  });
}

function channelFull(answer: ControlAnswer, sizeBytes: number): AppError {
  const [message, hint] =
    answer.status === 413
      ? [
          `a message of ${sizeBytes} bytes is too long`,
          `Send at most ${MAX_MESSAGE_BYTES} bytes at a time.`,
        ]
      : ["the instance's queue is full", 'Wait until the guest has read the waiting messages.'];
  const retryAfter = answer.headers['retry-after'] ?? null;
  return new AppError('CHANNEL_FULL', message, {
    details: { status: answer.status, retryAfter },
    hint,
  });
}
