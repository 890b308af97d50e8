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
import type { GuestLines } from './guest-lines.ts';
import { acceptUpgrade, refuseUpgrade } from './answer-upgrade.ts';
import type { FindService } from './service-relay.ts';

const PATH = /^\/v1\/instances\/([^/]+)\/datagrams\/([a-z][a-z0-9-]{0,31})$/;
const OPEN_TIMEOUT_MS = 10_000;
/**
 * metad ends the flow with the longest idle time to make room. That flow may still be open here.
 */
const MAX_FLOWS = 2 * MAX_DATAGRAM_FLOWS;
/** Time without a datagram from the guest. Datagrams from the service do not prolong a flow. */
const IDLE_MS = 30_000;
/**
 * Datagrams that the service may send for each from the guest. DNS and NTP send one, NTP's
 * monitoring a few. Further ones are dropped.
 */
const ANSWERS_PER_DATAGRAM = 8;
/** Limits the answers owed to a guest that sent many datagrams and received no answer. */
const MAX_ANSWERS_OWED = 64;
/** Bytes that wait for a reader. Further datagrams are dropped, as by a network. */
const MAX_WAITING_BYTES = 64 * 1024;

export interface DatagramRelayOptions {
  readonly findService: FindService;
  readonly failures: GuestLines;
}

/**
 * Answers metad's requests for exposed UDP services. A flow is one source port of one guest. It has
 * its own socket, connected to the service: the kernel drops datagrams from other senders, and an
 * answer cannot reach another flow.
 */
export class DatagramRelay {
  readonly #options: DatagramRelayOptions;
  /** A flow counts until its stream is closed. */
  readonly #slots = new InstanceSlots(MAX_FLOWS);

  constructor(options: DatagramRelayOptions) {
    this.#options = options;
  }

  static isFor(request: IncomingMessage): boolean {
    return PATH.test(request.url ?? '');
  }

  /** Answers with 101 and datagrams, or with a status that gives the reason. */
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
  // The port is closed (ECONNREFUSED) or there is no route. The guest's next datagram tries again.
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

/** Opens a socket that receives only from the service. */
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
