import { rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { CLOUDS } from '#shared/contract/cloud-credentials.ts';
import { MAX_BULK_STREAMS, METAD_FILE_SOCKET } from '#shared/contract/metad-control.ts';
import { uuid as uuidType } from '#shared/contract/primitives.ts';
import { DEFAULT_LIMITS } from '#shared/contract/view.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/clock/clock.ts';
import type { Logger } from '#shared/log/log.ts';
import { listenOnUnixSocket } from '#shared/socket/listen-unix.ts';
import { DatagramRelay } from './datagram-relay.ts';
import type { OpenRelay } from '../relay/relays.ts';
import { AUDIT_RATES, GuestLines } from './guest-lines.ts';
import type { MetadFileSocket } from './hand-over-file.ts';
import { refuse } from './refuse.ts';
import { BootSender, type FindBootTree } from './send-boot.ts';
import { MirrorSender, type OpenMirror } from './send-mirror.ts';
import { RelaySender } from './send-relay.ts';
import { sendFile } from './send-file.ts';
import { type IssueToken, TokenSender } from './send-token.ts';
import { type FindService, ServiceRelay } from './service-relay.ts';

/**
 * Source of metad's bulk content. Undefined means that the present installation of the instance has
 * no such content.
 */
export interface ContentProvider {
  openImage(
    uuid: string,
  ): Promise<{ readonly path: string; readonly sizeBytes: number } | undefined>;
  openPackage(
    uuid: string,
    signal: AbortSignal,
  ): Promise<{ readonly stream: Readable; readonly sizeBytes: number | null } | undefined>;
  readonly openMirror: OpenMirror;
  readonly findBootTree: FindBootTree;
  readonly findService: FindService;
  readonly issueToken: IssueToken;
  readonly openRelay: OpenRelay;
}

export interface ContentServer {
  close(): Promise<void>;
}

export interface ContentServerOptions {
  readonly socketPath: string;
  /** Group of the only user besides root that may connect. */
  readonly gid: number;
  readonly content: ContentProvider;
  readonly logger: Logger;
  readonly clock: Clock;
}

const MAX_LOGGED_PATH = 256;
const PATH =
  /^\/v1\/instances\/([^/]+)\/((?:image|package)$|(?:mirror|boot|relay)\/|identity\/(?:token\?|credentials\/))(.*)$/;
/** rw-rw---- */
const SOCKET_MODE = 0o660;

/**
 * Serves images, packages, boot files, identity tokens, credentials, relays and exposed services to
 * metad (shared/contract/metad-control.ts).
 */
export async function startContentServer(options: ContentServerOptions): Promise<ContentServer> {
  const failures = new GuestLines(options.logger, options.clock);
  const metad: MetadFileSocket = {
    path: join(dirname(options.socketPath), METAD_FILE_SOCKET),
    gid: options.gid,
  };
  const senders: Senders = {
    metad,
    mirrors: new MirrorSender(options.content.openMirror),
    boots: new BootSender(options.content.findBootTree, metad),
    tokens: new TokenSender(options.content.issueToken),
    relays: new RelaySender({
      ...{ openRelay: options.content.openRelay, failures, clock: options.clock },
      audit: new GuestLines(options.logger, options.clock, AUDIT_RATES),
    }),
    bulk: new InstanceSlots(MAX_BULK_STREAMS),
  };
  // Bodies for relays may take longer; relays limit their time.
  const timeouts = { headersTimeout: 30_000, requestTimeout: 0 };
  const server = createServer(timeouts, (request, response) => {
    answer(request, response, options.content, senders).catch((error: unknown) =>
      fail(response, request, error, failures),
    );
  });
  const { findService } = options.content;
  const maxConnections = DEFAULT_LIMITS.connections;
  const connections = new ServiceRelay({ findService, maxConnections, failures });
  const datagrams = new DatagramRelay({ findService, failures });
  // Upgraded connections, which closeAllConnections leaves open.
  const streams = new Set<Duplex>();
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    streams.add(socket);
    socket.on('close', () => streams.delete(socket));
    const relay = DatagramRelay.isFor(request) ? datagrams : connections;
    relay.accept(request, socket, head).catch((error: unknown) => {
      failures.warn(instanceOf(request), 'content.failed', failureOf(request, error));
      socket.destroy();
    });
  });
  // The folder belongs to metad's user, which may have created this path.
  rmSync(options.socketPath, { force: true });
  await listenOnUnixSocket(server, options.socketPath, { mode: SOCKET_MODE, gid: options.gid });
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of streams) socket.destroy();
      }),
  };
}

interface Senders {
  readonly metad: MetadFileSocket;
  readonly mirrors: MirrorSender;
  readonly boots: BootSender;
  readonly tokens: TokenSender;
  readonly relays: RelaySender;
  /**
   * Images and packages until their answers are closed. Each needs a descriptor and buffers; a
   * package also needs a download.
   */
  readonly bulk: InstanceSlots;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  content: ContentProvider,
  { metad, mirrors, boots, tokens, relays, bulk }: Senders,
): Promise<void> {
  const [, uuid = '', kind = '', rest = ''] = PATH.exec(request.url ?? '') ?? [];
  if (!uuidType.safeParse(uuid).success) return refuse(response, 404, 'no such path');
  if (kind === 'relay/') return relays.send(uuid, rest, request, response);
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return refuse(response, 405, 'only GET and HEAD');
  }
  switch (kind) {
    case 'mirror/':
      return mirrors.send(uuid, rest, request, response);
    case 'boot/':
      return boots.send(uuid, rest, request, response);
    case 'identity/token?':
      return tokens.send(uuid, rest, null, response);
    case 'identity/credentials/': {
      const cloud = CLOUDS.find((each) => each === rest);
      if (cloud === undefined) return refuse(response, 404, 'no such path');
      return tokens.send(uuid, '', cloud, response);
    }
    default: {
      const giveBack = bulk.take(uuid);
      if (!giveBack) return refuse(response, 503, 'too many concurrent transfers');
      response.on('close', giveBack);
      if (kind === 'package') return sendPackage(uuid, request, response, content);
      return sendImage(uuid, request, response, content, metad);
    }
  }
}

async function sendImage(
  uuid: string,
  request: IncomingMessage,
  response: ServerResponse,
  content: ContentProvider,
  metad: MetadFileSocket,
): Promise<void> {
  const image = await content.openImage(uuid);
  if (!image) return refuse(response, 404, 'this instance is not being installed from an image');
  await using handle = await open(image.path);
  await sendFile({ handle, offset: 0, sizeBytes: image.sizeBytes }, request, response, metad);
}

async function sendPackage(
  uuid: string,
  request: IncomingMessage,
  response: ServerResponse,
  content: ContentProvider,
): Promise<void> {
  const controller = new AbortController();
  response.on('close', () => controller.abort(new Error('the reader disconnected')));
  const found = await content.openPackage(uuid, controller.signal);
  if (!found) return refuse(response, 404, 'this instance is not being installed with a package');
  response.writeHead(200, {
    'content-type': 'application/gzip',
    ...(found.sizeBytes !== null && { 'content-length': found.sizeBytes }),
  });
  if (request.method === 'HEAD') {
    found.stream.destroy();
    response.end();
    return;
  }
  await pipeline(found.stream, response);
}

/** Returns the instance's UUID from the path of a request, or an empty string. */
function instanceOf(request: IncomingMessage): string {
  const [, uuid] = /^\/v1\/instances\/([^/]+)\//.exec(request.url ?? '') ?? [];
  return uuidType.safeParse(uuid).data ?? '';
}

/** Guests choose the length of a path. A query may contain values of the guest. */
function failureOf(request: IncomingMessage, error: unknown): object {
  const [path] = request.url?.split('?', 1) ?? [];
  return { path: path?.slice(0, MAX_LOGGED_PATH), reason: messageOf(error) };
}

/**
 * Refuses the request, or destroys the connection after the first byte, so that the reader does not
 * take the failure for the end of the content.
 */
function fail(
  response: ServerResponse,
  request: IncomingMessage,
  error: unknown,
  failures: GuestLines,
): void {
  failures.warn(instanceOf(request), 'content.failed', failureOf(request, error));
  if (response.headersSent) response.destroy();
  else refuse(response, 502, messageOf(error));
}
