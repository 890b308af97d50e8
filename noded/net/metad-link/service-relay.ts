import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { SOURCE_PORT_HEADER } from '#shared/contract/metad-control.ts';
import { uuid as uuidType } from '#shared/contract/primitives.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { joinStreams } from '#shared/stream/join-streams.ts';
import { acceptUpgrade, refuseUpgrade } from './answer-upgrade.ts';
import type { GuestLines } from './guest-lines.ts';
import { type ProxiedInstance, proxyHeader } from './proxy-header.ts';
import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Destination of an instance's connections or datagrams to an exposed service. */
export interface ServiceTarget {
  readonly instance: ProxiedInstance;
  /** Destination port of the guest. */
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  readonly destination: ServiceDestination;
}

export type ServiceDestination =
  | { readonly host: string; readonly hostPort: number }
  /**
   * A socket that only its owner and group may connect to, because a client can claim to be any
   * instance.
   */
  | { readonly socketPath: string };

/** Returns undefined when the instance has no channel now, or the service does not exist. */
export type FindService = (uuid: string, name: string) => Promise<ServiceTarget | undefined>;

const PATH = /^\/v1\/instances\/([^/]+)\/services\/([a-z][a-z0-9-]{0,31})$/;
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * After the end of one direction, a lost reader of the other may stay unnoticed. Idle connections
 * are ended after this time.
 */
const HALF_CLOSED_IDLE_MS = 60_000;

export interface ServiceRelayOptions {
  readonly findService: FindService;
  /** Concurrent connections of one instance. */
  readonly maxConnections: number;
  readonly failures: GuestLines;
}

/** Answers metad's requests for exposed TCP services. */
export class ServiceRelay {
  readonly #options: ServiceRelayOptions;
  /** A connection counts until both sides are closed. */
  readonly #slots: InstanceSlots;

  constructor(options: ServiceRelayOptions) {
    this.#options = options;
    this.#slots = new InstanceSlots(options.maxConnections);
  }

  /** Answers with 101 and the service's own bytes, or with a status that gives the reason. */
  async accept(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy());
    const [, uuid = '', name = ''] = PATH.exec(request.url ?? '') ?? [];
    const { findService, failures } = this.#options;
    const target = uuidType.safeParse(uuid).success ? await findService(uuid, name) : undefined;
    if (target?.protocol !== 'tcp')
      return refuseUpgrade(socket, '404 Not Found', 'no such service');
    const giveBack = this.#slots.take(uuid);
    if (!giveBack) return refuseUpgrade(socket, '503 Busy', 'too many connections');
    try {
      const service = await open(target.destination);
      service.on('close', giveBack);
      join(request, socket, head, service, target);
    } catch (error) {
      giveBack();
      const reason = messageOf(error);
      failures.warn(uuid, 'service.unreachable', { service: name, ...target.destination, reason });
      refuseUpgrade(socket, '502 Bad Gateway', `service '${name}' is unreachable`);
    }
  }
}

function join(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  service: Socket,
  target: ServiceTarget,
): void {
  if (socket.destroyed) {
    service.destroy();
    return;
  }
  const sourcePort = Number(request.headers[SOURCE_PORT_HEADER]);
  const isPort = Number.isInteger(sourcePort) && sourcePort >= 0 && sourcePort <= 65_535;
  service.write(proxyHeader(target.instance, isPort ? sourcePort : 0, target.port));
  if (head.length > 0) service.write(head);
  acceptUpgrade(socket);
  joinStreams(socket, service);
  for (const stream of [socket, service]) {
    stream.on('end', () => service.setTimeout(HALF_CLOSED_IDLE_MS, () => service.destroy()));
  }
}

async function open(destination: ServiceDestination): Promise<Socket> {
  if ('socketPath' in destination) await checkSocketIsPrivate(destination.socketPath);
  const service = connect({
    ...('socketPath' in destination
      ? { path: destination.socketPath }
      : { host: destination.host, port: destination.hostPort, noDelay: true }),
    allowHalfOpen: true,
  });
  try {
    await once(service, 'connect', { signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) });
    return service;
  } catch (error) {
    service.on('error', () => undefined);
    service.destroy();
    throw error;
  }
}

const OTHERS_WRITE = 0o002;
const OTHERS_ENTER = 0o001;

/**
 * Refuses a socket that every user can connect to. A service trusts the PROXY header of its
 * clients, so such a socket protects no better than a port.
 * @throws Error with the command to run
 */
async function checkSocketIsPrivate(path: string): Promise<void> {
  const socket = await lstat(path);
  if (!socket.isSocket()) throw new Error(`${path} is not a socket`);
  if ((socket.mode & OTHERS_WRITE) === 0 || !(await isReachedByOthers(path))) return;
  throw new Error(
    `every user of this host can connect to ${path} and pose as any instance: run chmod o-w ${path}`,
  );
}

async function isReachedByOthers(path: string): Promise<boolean> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (((await lstat(folder)).mode & OTHERS_ENTER) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
