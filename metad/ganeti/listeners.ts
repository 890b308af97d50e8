import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import type { Logger } from '#shared/log/log.ts';
import {
  findInterfaceIndex,
  interfaceIndex,
  openDeviceSocket,
  setHopLimit,
} from '#shared/sys/network-sockets.ts';
import { ACCEPT_OPTIONS, UNACKNOWLEDGED_MS } from '../channel/accept-options.ts';
import { parseRouteTable } from './route-table.ts';
import { RECEIVE_BUFFER_BYTES, SEND_BUFFER_BYTES } from '../config/limits.ts';
import type { RouteTable } from './route-table.ts';

const ROUTE_FILE = '/proc/net/route';
/** Ganeti creates TAPs without notice, so the routes are polled. */
const POLL_INTERVAL_MS = 1000;

export interface ListenersOptions {
  readonly address: string;
  readonly port: number;
  /** IP TTL of answers; the kernel's when null. */
  readonly hopLimit: number | null;
  readonly onConnection: (device: string | null, socket: Socket) => void;
  readonly addresses: () => readonly string[];
  readonly logger: Logger;
}

interface Listener {
  readonly server: Server;
  readonly interfaceIndex: number;
}

/**
 * One listener for all devices and one for each device of a configured address; the device's own
 * has precedence. TAPs appear and disappear with their instances, so the listeners are compared
 * with the routing table at intervals.
 */
class Listeners implements Disposable {
  readonly #options: ListenersOptions;
  readonly #devices = new Map<string, Listener>();
  readonly #common: Server;
  #routes: RouteTable = parseRouteTable('');
  readonly #timer: NodeJS.Timeout;

  constructor(options: ListenersOptions) {
    this.#options = options;
    this.#common = this.#listen(null);
    this.#timer = setInterval(() => void this.refresh(), POLL_INTERVAL_MS);
  }

  deviceOf(ip: string): string | null {
    return this.#routes.deviceOf(ip);
  }

  has(device: string): boolean {
    return this.#devices.has(device);
  }

  /**
   * Opens missing listeners of some addresses. Its cost does not grow with the number of all
   * addresses.
   */
  async cover(addresses: readonly string[]): Promise<void> {
    if (!(await this.#readRoutes())) return;
    for (const ip of addresses) {
      const device = this.#routes.deviceOf(ip);
      if (device === null) continue;
      const listener = this.#devices.get(device);
      if (listener?.interfaceIndex === findInterfaceIndex(device)) continue;
      listener?.server.close();
      this.#devices.delete(device);
      this.#addDevice(device);
    }
  }

  /** Opens missing listeners and closes unneeded ones. */
  async refresh(): Promise<void> {
    if (!(await this.#readRoutes())) return;
    const wanted = new Set(this.#options.addresses().map((ip) => this.#routes.deviceOf(ip)));
    for (const [device, listener] of this.#devices) {
      if (wanted.has(device) && listener.interfaceIndex === findInterfaceIndex(device)) continue;
      listener.server.close();
      this.#devices.delete(device);
    }
    for (const device of wanted) {
      if (device !== null && !this.#devices.has(device)) this.#addDevice(device);
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#common.close();
    for (const { server } of this.#devices.values()) server.close();
    this.#devices.clear();
  }

  async #readRoutes(): Promise<boolean> {
    try {
      this.#routes = parseRouteTable(await readFile(ROUTE_FILE, 'utf8'));
      return true;
    } catch (error) {
      this.#options.logger.warn('ganeti.no-routes', { error: messageOf(error) });
      return false;
    }
  }

  #addDevice(device: string): void {
    try {
      const index = interfaceIndex(device);
      this.#devices.set(device, { server: this.#listen(device), interfaceIndex: index });
      this.#options.logger.info('ganeti.device', { device });
    } catch (error) {
      // The device disappeared, or may not be bound: its guests are known by their address.
      this.#options.logger.warn('ganeti.device-failed', { device, error: messageOf(error) });
    }
  }

  #listen(device: string | null): Server {
    const { address, port, hopLimit, onConnection } = this.#options;
    const fd = openDeviceSocket({
      device,
      type: 'tcp',
      address,
      port,
      isShared: true,
      receiveBufferBytes: RECEIVE_BUFFER_BYTES,
      sendBufferBytes: SEND_BUFFER_BYTES,
      unacknowledgedMs: UNACKNOWLEDGED_MS,
    });
    if (hopLimit !== null) setHopLimit(fd, false, hopLimit);
    const server = createServer(ACCEPT_OPTIONS, (socket) => onConnection(device, socket));
    server.on('error', (error) => {
      this.#options.logger.warn('ganeti.listener-error', { device, error: messageOf(error) });
    });
    server.listen({ fd });
    return server;
  }
}

export type { Listeners };

/**
 * @throws AppError NETWORK_SETUP when the port is not available: the metadata service must not be
 * silently off
 */
export async function openListeners(options: ListenersOptions): Promise<Listeners> {
  try {
    const listeners = new Listeners(options);
    await listeners.refresh();
    return listeners;
  } catch (error) {
    throw new AppError(
      'NETWORK_SETUP',
      `cannot listen on ${options.address}:${options.port}: ${messageOf(error)}`,
      {
        hint: 'Stop the program that listens there, or allow the port with net.ipv4.ip_unprivileged_port_start',
        cause: error,
      },
    );
  }
}
