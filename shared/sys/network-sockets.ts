import { checked, closeFd, libc, numberOf } from './libc.ts';
import { cSocket, cBind, cListen, SOCK_STREAM, SOCK_DGRAM, SOCK_FLAGS } from './socket-calls.ts';

const cOpen = libc.func('int open(const char *path, int flags)');
const cSetns = libc.func('int setns(int fd, int nstype)');
const cIoctl = libc.func('int ioctl(int fd, unsigned long request, void *argument)');
const cSetsockopt = libc.func(
  'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
);
const cSendto = libc.func(
  'int64_t sendto(int fd, const void *bytes, size_t length, int flags, const void *to, uint32_t toLength)',
);
const cIfNametoindex = libc.func('unsigned int if_nametoindex(const char *name)');
const O_RDWR = 0o2;
const O_CLOEXEC = 0o2000000;
const CLONE_NEWNET = 0x40000000;
/** linux/if_tun.h */
const TUNSETIFF = 0x400454ca;
const IFF_TAP = 0x0002;
const IFF_NO_PI = 0x1000;
const IFF_VNET_HDR = 0x4000;
const IFREQ_BYTES = 40;
/** linux/if.h: names have at most 15 bytes and a NUL. */
export const MAX_INTERFACE_NAME_BYTES = 15;
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_RAW = 3;
export const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_BROADCAST = 6;
const SO_BINDTODEVICE = 25;
const IPPROTO_TCP = 6;
const TCP_USER_TIMEOUT = 18;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const IPV6_UNICAST_HOPS = 16;
const IPPROTO_IP = 0;
const IP_TTL = 2;
const IP_FREEBIND = 15;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;

/**
 * Runs a synchronous function with this thread in another network namespace: sockets and TAPs that
 * it creates stay there.
 * @param path of the namespace, as `/run/netns/gnt-com`
 */
export function inNetworkNamespace<T>(path: string, body: () => T): T {
  const own = checked('open', cOpen('/proc/thread-self/ns/net', O_CLOEXEC));
  try {
    const other = checked('open', cOpen(path, O_CLOEXEC));
    try {
      checked('setns', cSetns(other, CLONE_NEWNET));
      try {
        return body();
      } finally {
        checked('setns', cSetns(own, CLONE_NEWNET));
      }
    } finally {
      closeFd(other);
    }
  } finally {
    closeFd(own);
  }
}

/**
 * Creates a TAP in the current network namespace. It exists as long as one of its descriptors.
 * @returns a descriptor with IFF_VNET_HDR for QEMU's `-netdev tap,fd=`
 */
export function openTap(name: string): number {
  if (Buffer.byteLength(name) > MAX_INTERFACE_NAME_BYTES)
    throw new RangeError(`TAP name too long: ${name}`);
  const fd = checked('open', cOpen('/dev/net/tun', O_RDWR | O_CLOEXEC));
  try {
    const request = Buffer.alloc(IFREQ_BYTES);
    request.write(name);
    request.writeUInt16LE(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR, 16);
    checked('ioctl TUNSETIFF', cIoctl(fd, TUNSETIFF, request));
    return fd;
  } catch (error) {
    closeFd(fd);
    throw error;
  }
}

export interface DeviceSocketOptions {
  /** Null listens on every device; a socket of one device has precedence. */
  readonly device: string | null;
  readonly type: 'tcp' | 'udp';
  /** IPv4 dotted quad, or a link-local IPv6 address (the device gives the zone). */
  readonly address: string;
  readonly port: number;
  readonly backlog?: number;
  /**
   * SO_RCVBUF; accepted sockets inherit it from the listening one. The kernel doubles it and grows
   * it no further.
   */
  readonly receiveBufferBytes?: number;
  /**
   * SO_SNDBUF, as above. Without it the kernel keeps up to 4 MiB for a peer that was fast once and
   * stopped reading, from memory that all TCP of the host shares.
   */
  readonly sendBufferBytes?: number;
  /**
   * TCP_USER_TIMEOUT of accepted sockets: the connection ends when the peer leaves data
   * unacknowledged, ignores keepalive probes or keeps its window shut for this long.
   */
  readonly unacknowledgedMs?: number;
  /**
   * For IPv4: lets a socket of every device and those of single devices share a port, and binds to
   * an address that the host does not have yet. All of them must be opened so, by one user.
   */
  readonly isShared?: boolean;
}

/**
 * Opens a socket that receives only from one device (SO_BINDTODEVICE; unprivileged processes may
 * set it once).
 * @returns a bound (tcp: listening) non-blocking descriptor for `server.listen({ fd })` or
 * `dgram.bind({ fd })`
 * @throws Error with `code` ENODEV without such a device, EADDRNOTAVAIL while it lacks the address
 */
export function openDeviceSocket(options: DeviceSocketOptions): number {
  const isV6 = options.address.includes(':');
  const type = (options.type === 'tcp' ? SOCK_STREAM : SOCK_DGRAM) | SOCK_FLAGS;
  const fd = checked('socket', cSocket(isV6 ? AF_INET6 : AF_INET, type, 0));
  const one = Buffer.from([1, 0, 0, 0]);
  const set = (level: number, name: number, value: Buffer): void => {
    checked('setsockopt', cSetsockopt(fd, level, name, value, value.length));
  };
  try {
    set(SOL_SOCKET, SO_REUSEADDR, one);
    if (options.isShared) {
      set(SOL_SOCKET, SO_REUSEPORT, one);
      set(IPPROTO_IP, IP_FREEBIND, one);
    }
    if (options.device !== null) {
      set(SOL_SOCKET, SO_BINDTODEVICE, Buffer.from(`${options.device}\0`));
    }
    if (options.type === 'udp') set(SOL_SOCKET, SO_BROADCAST, one);
    if (isV6) set(IPPROTO_IPV6, IPV6_V6ONLY, one);
    if (options.receiveBufferBytes !== undefined) {
      set(SOL_SOCKET, SO_RCVBUF, int32(options.receiveBufferBytes));
    }
    if (options.sendBufferBytes !== undefined) {
      set(SOL_SOCKET, SO_SNDBUF, int32(options.sendBufferBytes));
    }
    if (options.type === 'tcp' && options.unacknowledgedMs !== undefined) {
      set(IPPROTO_TCP, TCP_USER_TIMEOUT, int32(options.unacknowledgedMs));
    }
    const address = isV6
      ? encodeSockaddrIn6(
          options.address,
          options.port,
          options.device === null ? 0 : interfaceIndex(options.device),
        )
      : encodeSockaddrIn(options.address, options.port);
    checked('bind', cBind(fd, address, address.length));
    if (options.type === 'tcp') checked('listen', cListen(fd, options.backlog ?? 511));
    return fd;
  } catch (error) {
    closeFd(fd);
    throw error;
  }
}

/**
 * Sets the TTL (IPv4) or hop limit (IPv6) of a socket; accepted sockets inherit it from the
 * listening one.
 * @param hops 1 to 255
 */
export function setHopLimit(fd: number, isV6: boolean, hops: number): void {
  const value = int32(hops);
  const [level, name] = isV6 ? [IPPROTO_IPV6, IPV6_UNICAST_HOPS] : [IPPROTO_IP, IP_TTL];
  checked('setsockopt', cSetsockopt(fd, level, name, value, value.length));
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}

/**
 * Opens an unconnected IPv4 TCP socket whose packets leave through one device, whatever the routes.
 */
export function openDeviceClientSocket(device: string): number {
  const fd = checked('socket', cSocket(AF_INET, SOCK_STREAM | SOCK_FLAGS, 0));
  try {
    const name = Buffer.from(`${device}\0`);
    const result = numberOf(cSetsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, name.length));
    checked('setsockopt', result);
    return fd;
  } catch (error) {
    closeFd(fd);
    throw error;
  }
}

/**
 * Sends raw TCP segments to their addresses through one device.
 * @param from an address of the host, IPv4 or link-local IPv6, as all of `to`
 * @throws Error with `code` EPERM without CAP_NET_RAW, ENODEV, EADDRNOTAVAIL
 */
export function sendTcpSegments(
  device: string,
  from: string,
  segments: readonly { readonly to: string; readonly bytes: Buffer }[],
): void {
  const isV6 = from.includes(':');
  const addressOf = (address: string): Buffer =>
    isV6 ? encodeSockaddrIn6(address, 0, interfaceIndex(device)) : encodeSockaddrIn(address, 0);
  const fd = checked(
    'socket',
    cSocket(isV6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_FLAGS, IPPROTO_TCP),
  );
  try {
    const name = Buffer.from(`${device}\0`);
    checked('setsockopt', cSetsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, name.length));
    const source = addressOf(from);
    checked('bind', cBind(fd, source, source.length));
    for (const { to, bytes } of segments) {
      const target = addressOf(to);
      checked('sendto', cSendto(fd, bytes, bytes.length, 0, target, target.length));
    }
  } finally {
    closeFd(fd);
  }
}

export function addressBytes(address: string): Buffer {
  return address.includes(':') ? expandIpv6(address) : Buffer.from(address.split('.').map(Number));
}

/** @throws Error with `code` ENODEV */
export function interfaceIndex(device: string): number {
  const index = findInterfaceIndex(device);
  if (index === null)
    throw Object.assign(new Error(`no such device: ${device}`), { code: 'ENODEV' });
  return index;
}

/** @returns null without such a device */
export function findInterfaceIndex(device: string): number | null {
  return numberOf(cIfNametoindex(device)) || null;
}

function encodeSockaddrIn(address: string, port: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16LE(AF_INET, 0);
  bytes.writeUInt16BE(port, 2);
  addressBytes(address).copy(bytes, 4);
  return bytes;
}

function encodeSockaddrIn6(address: string, port: number, scopeId: number): Buffer {
  const bytes = Buffer.alloc(28);
  bytes.writeUInt16LE(AF_INET6, 0);
  bytes.writeUInt16BE(port, 2);
  expandIpv6(address).copy(bytes, 8);
  bytes.writeUInt32LE(scopeId, 24);
  return bytes;
}

function expandIpv6(address: string): Buffer {
  const [head = '', tail] = address.split('::');
  const left = head.split(':').filter(Boolean);
  const right = (tail ?? '').split(':').filter(Boolean);
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
  const bytes = Buffer.alloc(16);
  groups.forEach((group, index) => bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2));
  return bytes;
}
