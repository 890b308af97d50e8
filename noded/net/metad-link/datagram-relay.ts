import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { orAborted } from '#shared/abort/abortable.ts';
import { InstanceSlots } from '#shared/bounds/instance-slots.ts';
import { MAX_DATAGRAM_BYTES, MAX_DATAGRAM_FLOWS } from '#shared/contract/metad-control.ts';
import { uuid as uuidType } from '#shared/contract/primitives.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import { DatagramReader, encodeDatagram } from '#shared/stream/datagram-frames.ts';
import type { GuestFailures } from './guest-failures.ts';
import { acceptUpgrade, refuseUpgrade } from './answer-upgrade.ts';
import type { FindService } from './service-relay.ts';

const PATH = /^\/v1\/instances\/([^/]+)\/datagrams\/([a-z][a-z0-9-]{0,31})$/;
const OPEN_TIMEOUT_MS = 10_000;
/** metad ends the one that is idle longest to make room; here it may not be closed yet. */
const MAX_FLOWS = 2 * MAX_DATAGRAM_FLOWS;
/** Time without a datagram of the guest; what the service says does not keep a flow. */
const IDLE_MS = 30_000;
/**
 * Datagrams of the service for one of the guest's: DNS and NTP send one, and NTP's monitoring a
 * few. A service that sends more to a guest that asked once is dropped beyond it.
 */
const ANSWERS_PER_DATAGRAM = 8;
/** Answers that a guest may have coming which asked often and heard nothing. */
const MAX_ANSWERS_OWED = 64;
/** Bytes that wait for a reader; what comes then is dropped, as a network does. */
const MAX_WAITING_BYTES = 64 * 1024;

export interface DatagramRelayOptions {
  readonly findService: FindService;
  readonly failures: GuestFailures;
}

/**
 * Answers metad's requests for exposed UDP services: a flow is one source port of one guest, and
 * has a socket of its own, connected to the service, so that the kernel drops what comes from
 * anywhere else and an answer cannot reach another flow.
 */
export class DatagramRelay {
  readonly #options: DatagramRelayOptions;
  /** Flows, which count until their streams are closed. */
  readonly #slots = new InstanceSlots(MAX_FLOWS);

  constructor(options: DatagramRelayOptions) {
    this.#options = options;
  }

  static isFor(request: IncomingMessage): boolean {
    return PATH.test(request.url ?? '');
  }

  /** 101 and datagrams, or a status that says why not. */
  async accept(request: IncomingMessage, stream: Duplex, head: Buffer): Promise<void> {
    stream.on('error', () => stream.destroy());
    const [, uuid = '', name = ''] = PATH.exec(request.url ?? '') ?? [];
    const { findService, failures } = this.#options;
    const target = uuidType.safeParse(uuid).success ? await findService(uuid, name) : undefined;
    if (target?.protocol !== 'udp' || 'socketPath' in target.destination) {
      return refuseUpgrade(stream, '404 Not Found', 'no such service');
    }
    const giveBack = this.#slots.take(uuid);
    if (!giveBack) return refuseUpgrade(stream, '503 Busy', 'too many flows');
    if (stream.destroyed) return giveBack();
    stream.on('close', giveBack);
    const { host, hostPort } = target.destination;
    const warn = (reason: string): void =>
      failures.warn(uuid, 'service.unreachable', { service: name, host, hostPort, reason });
    try {
      const service = await open(host, hostPort);
      join(stream, head, service, warn);
    } catch (error) {
      warn(messageOf(error));
      refuseUpgrade(stream, '502 Bad Gateway', `service '${name}' is unreachable`);
    }
  }
}

function join(
  stream: Duplex,
  head: Buffer,
  service: UdpSocket,
  warn: (reason: string) => void,
): void {
  if (stream.destroyed) {
    service.close();
    return;
  }
  const end = (): void => void stream.destroy();
  let idle = setTimeout(end, IDLE_MS).unref();
  const reader = new DatagramReader(MAX_DATAGRAM_BYTES);
  let owed = 0;
  const ask = (chunk: Buffer): void => {
    for (const datagram of reader.push(chunk)) {
      clearTimeout(idle);
      idle = setTimeout(end, IDLE_MS).unref();
      owed = Math.min(owed + ANSWERS_PER_DATAGRAM, MAX_ANSWERS_OWED);
      if (service.getSendQueueSize() < MAX_WAITING_BYTES) service.send(datagram);
    }
  };
  const take = (chunk: Buffer): void => {
    try {
      ask(chunk);
    } catch {
      end();
    }
  };
  // Nobody is there (ECONNREFUSED), or no way: the guest's next datagram tries again.
  service.on('error', (error) => {
    warn(messageOf(error));
    end();
  });
  service.on('message', (answer) => {
    if (owed === 0 || answer.length > MAX_DATAGRAM_BYTES) return;
    if (stream.writableLength > MAX_WAITING_BYTES) return;
    owed--;
    stream.write(encodeDatagram(answer));
  });
  stream.on('close', () => {
    clearTimeout(idle);
    service.close();
  });
  stream.on('end', end);
  acceptUpgrade(stream);
  if (head.length > 0) take(head);
  stream.on('data', take);
}

/** A socket that hears the service alone. */
async function open(host: string, port: number): Promise<UdpSocket> {
  const signal = AbortSignal.timeout(OPEN_TIMEOUT_MS);
  const { address, family } = await orAborted(lookup(host), signal);
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  try {
    socket.connect(port, address);
    await once(socket, 'connect', { signal });
    return socket;
  } catch (error) {
    socket.on('error', () => undefined);
    socket.close();
    throw error;
  }
}
