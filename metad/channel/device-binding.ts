import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { SERVICE_IPV4, SERVICE_IPV6 } from '#shared/contract/service-address.ts';
import { messageOf } from '#shared/errors/app-error.ts';
import type { ViewService } from '#shared/contract/view.ts';
import type { Logger } from '#shared/log/log.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { interfaceIndex, openDeviceSocket, setHopLimit } from '#shared/sys/network-sockets.ts';
import { ACCEPT_OPTIONS, UNACKNOWLEDGED_MS } from './accept-options.ts';
import { RETRY_LIMIT, V6_RETRY_LIMIT, whenReady } from './when-ready.ts';
import { ServiceListeners } from './service-listeners.ts';
import { RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES } from '../config/limits.ts';
import type { OnServiceConnection, OnServiceSocket } from './service-listeners.ts';

const HTTP_PORT = 80;
const DHCP_PORT = 67;

interface DeviceHandlers {
  readonly onConnection: (socket: Socket) => void;
  readonly onServiceConnection: OnServiceConnection;
  readonly onServiceSocket: OnServiceSocket;
  readonly onDhcpMessage: (message: Buffer, socket: UdpSocket) => void;
}

export interface DeviceBindingOptions {
  readonly device: string;
  readonly hopLimit: number;
  readonly handlers: DeviceHandlers;
  readonly logger: Logger;
}

/** The listening sockets of one TAP. All their traffic came through that device. */
export class DeviceBinding implements AsyncDisposable {
  readonly device: string;
  /** Tells this TAP from a later one of the same name. */
  readonly interfaceIndex: number;
  readonly #servers: { readonly server: Server; readonly fd: number; readonly isV6: boolean }[] =
    [];
  readonly #options: DeviceBindingOptions;
  readonly #closing = new AbortController();
  readonly #services: ServiceListeners;
  #udp: UdpSocket | undefined;
  #hopLimit: number;

  private constructor(options: DeviceBindingOptions, index: number) {
    this.device = options.device;
    this.interfaceIndex = index;
    this.#options = options;
    this.#hopLimit = options.hopLimit;
    this.#services = new ServiceListeners({
      device: options.device,
      onConnection: options.handlers.onServiceConnection,
      onSocket: options.handlers.onServiceSocket,
      logger: options.logger,
    });
  }

  /**
   * Opens all sockets of a device; the IPv6 socket may follow later.
   * @throws AppError NETWORK_SETUP when the device or its address does not appear in time
   */
  static async open(options: DeviceBindingOptions, signal: AbortSignal): Promise<DeviceBinding> {
    const binding = new DeviceBinding(options, await retried(options.device, signal));
    try {
      await binding.#openIpv4(signal);
    } catch (error) {
      await binding[Symbol.asyncDispose]();
      throw error;
    }
    void binding.#openIpv6();
    return binding;
  }

  get isOpen(): boolean {
    return !this.#closing.signal.aborted;
  }

  /** Applies to new connections. */
  setHopLimit(hopLimit: number): void {
    if (hopLimit === this.#hopLimit) return;
    this.#hopLimit = hopLimit;
    for (const { fd, isV6 } of this.#servers) setHopLimit(fd, isV6, hopLimit);
  }

  /** Listens for these services, and ends the connections of others. */
  setServices(services: readonly ViewService[]): void {
    if (this.isOpen) this.#services.set(services, this.#hopLimit);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#services.set([], this.#hopLimit);
    this.#udp?.close();
    this.#udp = undefined;
    // close() of a server waits for its connections, but closes the listening descriptor at once.
    for (const { server } of this.#servers.splice(0)) server.close();
  }

  async #openIpv4(signal: AbortSignal): Promise<void> {
    const { device } = this;
    this.#listen(
      await whenReady(device, signal, RETRY_LIMIT, () =>
        openDeviceSocket({
          device,
          type: 'tcp',
          address: SERVICE_IPV4,
          port: HTTP_PORT,
          receiveBufferBytes: RECEIVE_BUFFER_BYTES,
          sendBufferBytes: SEND_BUFFER_BYTES,
          unacknowledgedMs: UNACKNOWLEDGED_MS,
        }),
      ),
      false,
    );
    const udpFd = openDeviceSocket({ device, type: 'udp', address: '0.0.0.0', port: DHCP_PORT });
    const udp = createSocket('udp4');
    udp.on('message', (message) => this.#options.handlers.onDhcpMessage(message, udp));
    udp.on('error', (error) => {
      this.#options.logger.warn('dhcp.socket-error', { device, error: messageOf(error) });
    });
    udp.bind({ fd: udpFd });
    this.#udp = udp;
  }

  async #openIpv6(): Promise<void> {
    const { device } = this;
    try {
      const fd = await whenReady(device, this.#closing.signal, V6_RETRY_LIMIT, () =>
        openDeviceSocket({
          device,
          type: 'tcp',
          address: SERVICE_IPV6,
          port: HTTP_PORT,
          receiveBufferBytes: RECEIVE_BUFFER_BYTES,
          sendBufferBytes: SEND_BUFFER_BYTES,
          unacknowledgedMs: UNACKNOWLEDGED_MS,
        }),
      );
      if (this.#closing.signal.aborted) closeFd(fd);
      else this.#listen(fd, true);
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#options.logger.warn('channel.no-ipv6', { device, error: messageOf(error) });
    }
  }

  #listen(fd: number, isV6: boolean): void {
    setHopLimit(fd, isV6, this.#hopLimit);
    const server = createServer(ACCEPT_OPTIONS, this.#options.handlers.onConnection);
    server.on('error', (error) => {
      this.#options.logger.warn('channel.listener-error', {
        device: this.device,
        error: messageOf(error),
      });
    });
    server.listen({ fd });
    this.#servers.push({ server, fd, isV6 });
  }
}

async function retried(device: string, signal: AbortSignal): Promise<number> {
  return await whenReady(device, signal, RETRY_LIMIT, () => interfaceIndex(device));
}
