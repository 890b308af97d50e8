import { closeSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import {
  HANDED_FILE_HEADER,
  MAX_BULK_STREAMS,
  MAX_MIRROR_STREAMS,
  TAKES_FILE_HEADER,
} from '#shared/contract/metad-control.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import {
  FILE_ANSWER_HEADERS,
  FILE_REQUEST_HEADERS,
  pickHeaders,
} from '#shared/http/file-headers.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import { requestOverSocket } from '#shared/socket/http-request.ts';
import { limitSilence } from '#shared/stream/limit-silence.ts';
import { pour } from '#shared/stream/pour.ts';
import { sendFilePart } from '#shared/stream/send-file-part.ts';
import { spendBuffer } from '#shared/stream/spend-buffer.ts';
import { BULK_STREAM_COST, RETRY_AFTER_S } from '../config/limits.ts';
import { type FolderName, isFolderName, type StreamName } from '../view/leaf.ts';
import type { Exchange } from './exchange.ts';
import type { ExpectedFile, HandedFiles } from './handed-files.ts';
import { sendText } from './reply.ts';

/**
 * Serves content of the node daemon: images, personalization packages and package mirrors of an
 * installation, and the tree of a boot environment.
 * @param path below the instance's, percent-encoded; defaults to the name
 */
type ContentName = StreamName | FolderName;
export type ServeStream = (exchange: Exchange, name: ContentName, path?: string) => void;

const PASSED_STATUSES = [200, 206, 304, 416];
/** Package managers request files that may not exist. */
const REFUSING_STATUSES = [400, 404];
/** Longest reason passed to the guest from a failed request. */
const MAX_REASON_BYTES = 4096;
/** A transfer fails when the node daemon sends nothing for this long. */
const IDLE_TIMEOUT_MS = 60_000;

export function createContentProxy(socketPath: string, handed: HandedFiles): ServeStream {
  return (exchange, name, path = name) => {
    const { request, response, instance } = exchange;
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const file = request.method === 'GET' && mayBeFile(name) ? handed.expect() : undefined;
    const asked = requestOverSocket({
      on: socketPath,
      path: `/v1/instances/${instance.view.uuid}/${path}`,
      method: request.method,
      headers: {
        ...pickHeaders(request.headers, FILE_REQUEST_HEADERS),
        ...(file && { [TAKES_FILE_HEADER]: file.name }),
      },
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      signal: gone.signal,
    });
    asked.then(
      (incoming) => {
        try {
          pass(exchange, name, incoming, file);
        } finally {
          file?.[Symbol.dispose]();
        }
      },
      (error: unknown) => {
        file?.[Symbol.dispose]();
        if (gone.signal.aborted) return;
        const status = name === 'boot' ? 503 : 502;
        refuse(exchange, status, `cannot fetch the ${name} from the node: ${messageOf(error)}`);
      },
    );
  };
}

function pass(
  exchange: Exchange,
  name: ContentName,
  incoming: IncomingMessage,
  file: ExpectedFile | undefined,
): void {
  const { response, instance } = exchange;
  const status = incoming.statusCode ?? 502;
  if (!PASSED_STATUSES.includes(status)) {
    const isRefusal =
      (isFolderName(name) && REFUSING_STATUSES.includes(status)) ||
      (name === 'boot' && status === 503);
    void sendReason(exchange, name, incoming, isRefusal ? status : 502);
    return;
  }
  const { [HANDED_FILE_HEADER]: part, ...answered } = incoming.headers;
  // The length of a handed-over file is in `part`; this one is that of the answer's empty body.
  if (part !== undefined) delete answered['content-length'];
  const headers = Object.entries(pickHeaders(answered, FILE_ANSWER_HEADERS)).flat();
  if (!isFolderName(name) && incoming.headers.etag === undefined && status !== 416) {
    headers.push('ETag', `"${instance.view.instanceId}-${name}"`);
  }
  if (name !== 'image' && !isFolderName(name)) headers.push('Cache-Control', 'no-store');
  if (part !== undefined) {
    incoming.resume();
    return passFile(exchange, status, headers, String(part), file?.take() ?? null);
  }
  response.writeHead(status, headers);
  // From here on only a silent body counts as a failure, not a guest that reads slowly.
  incoming.socket.setTimeout(0);
  // Must come after the listener of Node's parser, which copies the bytes.
  incoming.socket.on('data', spendBuffer);
  // A transfer that ends early must not look complete: the response is destroyed with it.
  void pour(limitSilence(incoming, IDLE_TIMEOUT_MS), response);
}

/** Returns whether the node daemon may have the content as a file that it can hand over. */
function mayBeFile(name: ContentName): boolean {
  return name === 'image' || name === 'boot';
}

/** @param part first byte and length of the requested part of the file */
function passFile(
  exchange: Exchange,
  status: number,
  headers: readonly string[],
  part: string,
  fd: number | null,
): void {
  const { response } = exchange;
  if (fd === null) return refuse(exchange, 503, 'the node sent no file');
  const [first = 0, length = 0] = part.split(' ').map(Number);
  response.writeHead(status, [...headers, 'Content-Length', String(length)]);
  sendFilePart(fd, [first, first + length - 1], response)
    // A transfer that ends early must not look complete.
    .catch(() => response.destroy())
    .finally(() => closeSync(fd));
}

async function sendReason(
  exchange: Exchange,
  name: string,
  incoming: IncomingMessage,
  status: number,
): Promise<void> {
  let reason = '';
  try {
    for await (const chunk of incoming) {
      reason += String(chunk);
      if (reason.length > MAX_REASON_BYTES) break;
    }
  } catch {
    // A truncated reason is passed on.
  }
  const text = reasonText(reason.slice(0, MAX_REASON_BYTES));
  refuse(exchange, status, `the node could not provide the ${name}: ${text}`);
}

/** iPXE in the ROM retries a 503 that has Retry-After. */
function refuse({ response }: Exchange, status: number, reason: string): void {
  sendText(response, status, reason, status === 503 ? ['Retry-After', String(RETRY_AFTER_S)] : []);
}

/** The node daemon's errors are JSON with a message; others are plain text. */
function reasonText(body: string): string {
  const value = parseJson(body);
  if (typeof value === 'object' && value !== null && 'message' in value)
    return String(value.message);
  return body.trim() === '' ? 'no reason given' : body.trim();
}

/**
 * Limits the concurrent streams of an instance. Opening a bulk stream costs as much as many
 * requests. The answer beyond the limit is 503, which the appliance retries.
 */
export function boundStreams(serve: ServeStream): ServeStream {
  const bulk = new InstanceSlots(MAX_BULK_STREAMS);
  const folders = new InstanceSlots(MAX_MIRROR_STREAMS);
  return (exchange, name, path) => {
    const { instance, response } = exchange;
    const isBulk = !isFolderName(name);
    const giveBack = (isBulk ? bulk : folders).take(instance.view.uuid);
    const isTooOften = isBulk && instance.charge(BULK_STREAM_COST) > 0;
    if (!giveBack || isTooOften) {
      giveBack?.();
      sendText(response, 503, `too many concurrent transfers`, [
        'Retry-After',
        String(RETRY_AFTER_S),
      ]);
      return;
    }
    response.on('close', giveBack);
    serve(exchange, name, path);
  };
}
