import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import type { ViewService } from '#shared/contract/view.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openDeviceSocket, setHopLimit } from '#shared/sys/network-sockets.ts';
import { SERVICE_BUFFER_BYTES } from '../config/limits.ts';
import { ACCEPT_OPTIONS, UNACKNOWLEDGED_MS } from './accept-options.ts';
import { V6_RETRY_LIMIT, whenReady } from './when-ready.ts';

export type OnServiceConnection = (service: ViewService, socket: Socket) => void;
/** Takes a socket for datagrams to a UDP service. It is closed when the service is removed. */
export type OnServiceSocket = (service: ViewService, socket: UdpSocket) => void;

export interface ServiceListenersOptions {
  readonly device: string;
  readonly onConnection: OnServiceConnection;
  readonly onSocket: OnServiceSocket;
  readonly logger: Logger;
}

/**
 * The ports of one device that lead to services. A port that cannot be opened is only logged: the
 * guest's metadata does not depend on it.
 */
export class ServiceListeners {
  readonly #options: ServiceListenersOptions;
  /** By all properties, so that a service with another target counts as new. */
  readonly #open = new Map<string, DisposableStack>();

  constructor(options: ServiceListenersOptions) {
    this.#options = options;
  }

  /** Opens missing services, and ends others with all their connections. */
  set(services: readonly ViewService[], hopLimit: number): void {
    const wanted = new Map(services.map((service) => [keyOf(service, hopLimit), service]));
    for (const [key, stack] of this.#open) {
      if (wanted.has(key)) continue;
      this.#open.delete(key);
      stack.dispose();
    }
    for (const [key, service] of wanted) {
      if (this.#open.has(key)) continue;
      const stack = new DisposableStack();
      this.#open.set(key, stack);
      for (const address of [SERVICE_IPV4, SERVICE_IPV6]) {
        void this.#listen(service, address, hopLimit, stack);
      }
    }
  }

  async #listen(
    service: ViewService,
    address: string,
    hopLimit: number,
    stack: DisposableStack,
  ): Promise<void> {
    const { device, logger } = this.#options;
    const { name, port, protocol = 'tcp' } = service;
    const abort = new AbortController();
    stack.defer(() => abort.abort());
    try {
      const fd = await whenReady(device, abort.signal, V6_RETRY_LIMIT, () =>
        openDeviceSocket({
          device,
          type: protocol,
          address,
          port,
          receiveBufferBytes: SERVICE_BUFFER_BYTES,
          sendBufferBytes: SERVICE_BUFFER_BYTES,
          unacknowledgedMs: UNACKNOWLEDGED_MS,
        }),
      );
      if (stack.disposed) return closeFd(fd);
      setHopLimit(fd, address === SERVICE_IPV6, hopLimit);
      if (protocol === 'tcp') this.#acceptOn(fd, service, stack);
      else this.#receiveOn(fd, service, address === SERVICE_IPV6, stack);
    } catch (error) {
      if (stack.disposed) return;
      logger.warn('service.not-listening', { device, service: name, error: messageOf(error) });
    }
  }

  #acceptOn(fd: number, service: ViewService, stack: DisposableStack): void {
    const sockets = new Set<Socket>();
    const server = createServer(ACCEPT_OPTIONS, (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      this.#options.onConnection(service, socket);
    });
    server.on('error', (error) => this.#warn(service, error));
    server.listen({ fd });
    stack.defer(() => {
      server.close();
      for (const socket of sockets) socket.resetAndDestroy();
    });
  }

  #receiveOn(fd: number, service: ViewService, isV6: boolean, stack: DisposableStack): void {
    const socket = createSocket(isV6 ? 'udp6' : 'udp4');
    socket.on('error', (error) => this.#warn(service, error));
    socket.bind({ fd });
    stack.defer(() => socket.close());
    this.#options.onSocket(service, socket);
  }

  #warn({ name }: ViewService, error: Error): void {
    const { device, logger } = this.#options;
    logger.warn('service.listener-error', { device, service: name, error: messageOf(error) });
  }
}

function keyOf(service: ViewService, hopLimit: number): string {
  const { name, port, host, hostPort, socketPath, protocol } = service;
  return JSON.stringify([name, port, host, hostPort, socketPath, protocol, hopLimit]);
}
