import { getSystemErrorName } from 'node:util';
import koffi from 'koffi';

/**
 * The system calls that Node has no API for: namespaces, TAPs and device-bound sockets. Everything
 * here is synchronous and returns file descriptors, which the caller owns and closes.
 */
const libc = koffi.load('libc.so.6');
const cOpen = libc.func('int open(const char *path, int flags)');
const cClose = libc.func('int close(int fd)');
const cSetns = libc.func('int setns(int fd, int nstype)');
const cIoctl = libc.func('int ioctl(int fd, unsigned long request, void *argument)');
const cSocket = libc.func('int socket(int domain, int type, int protocol)');
const cSetsockopt = libc.func(
  'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
);
const cBind = libc.func('int bind(int fd, const void *address, uint32_t length)');
const cListen = libc.func('int listen(int fd, int backlog)');
const cConnect = libc.func('int connect(int fd, const void *address, uint32_t length)');
const cSendto = libc.func(
  'int64_t sendto(int fd, const void *bytes, size_t length, int flags, const void *to, uint32_t toLength)',
);
const cMemfdCreate = libc.func('int memfd_create(const char *name, unsigned int flags)');
const cSocketpair = libc.func(
  'int socketpair(int domain, int type, int protocol, _Out_ int *descriptors)',
);
const cFcntl = libc.func('int fcntl(int fd, int command, void *argument)');
const cLseek = libc.func('int64_t lseek(int fd, int64_t offset, int whence)');
const cPosixFadvise = libc.func(
  'int posix_fadvise(int fd, int64_t offset, int64_t length, int advice)',
);
const cFlock = libc.func('int flock(int fd, int operation)');
const cRenameat2 = libc.func(
  'int renameat2(int fromDirectory, const char *from, int toDirectory, const char *to, unsigned int flags)',
);
const cSetrlimit = libc.func('int setrlimit(int resource, const void *limits)');
const cPrctl = libc.func(
  'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
);
const cIfNametoindex = libc.func('unsigned int if_nametoindex(const char *name)');

const RLIMIT_CORE = 4;
const PR_SET_DUMPABLE = 4;
const LOCK_EX_NB = 2 | 4;
const AT_FDCWD = -100;
const RENAME_EXCHANGE = 2;
const SEEK_DATA = 3;
const SEEK_HOLE = 4;
const POSIX_FADV_DONTNEED = 4;
const F_SETLK = 6;
const F_OFD_GETLK = 36;
const F_OFD_SETLK = 37;
const F_UNLCK = 2;
/**
 * F_WRLCK of the whole file, in the 32 bytes of a `struct flock` of 64-bit Linux: l_type, l_whence,
 * l_start, l_len, l_pid.
 */
const WHOLE_FILE_WRITE_LOCK = Buffer.from([1, ...new Array<number>(31).fill(0)]);
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
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_FLAGS = SOCK_CLOEXEC | 0o4000; // SOCK_NONBLOCK
const MFD_CLOEXEC = 1;
export const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_BROADCAST = 6;
const SO_BINDTODEVICE = 25;
const IPPROTO_TCP = 6;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const IPV6_UNICAST_HOPS = 16;
const IPPROTO_IP = 0;
const IP_TTL = 2;
const IP_FREEBIND = 15;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;

/** @throws Error of `errno`, with `code` */
export function checked(call: string, returned: unknown): number {
  const result = numberOf(returned);
  if (result >= 0) return result;
  const code = getSystemErrorName(-koffi.errno());
  throw Object.assign(new Error(`${call}: ${code}`), { code, syscall: call });
}

/** koffi types nothing that a call returns; all of these are declared to return an int. */
function numberOf(returned: unknown): number {
  if (typeof returned !== 'number') throw new TypeError('a system call returned no number');
  return returned;
}

export function closeFd(fd: number): void {
  checked('close', cClose(fd));
}

/**
 * Locks an open file against every other process that does so, until the descriptor is closed or
 * this process ends, however it ends.
 * @returns false when another process has the lock
 */
export function tryLockFile(fd: number): boolean {
  const result = numberOf(cFlock(fd, LOCK_EX_NB));
  if (result < 0 && getSystemErrorName(-koffi.errno()) === 'EAGAIN') return false;
  checked('flock', result);
  return true;
}

/**
 * Two paths of one file system change places, whatever they lead to: at no moment is one of them
 * missing.
 * @throws Error with `code` ENOENT when one of them is missing, EINVAL when the file system cannot
 */
export function exchangePaths(a: string, b: string): void {
  checked('renameat2', cRenameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
}

/**
 * Locks an open file in the other way that Linux has, which takes no notice of the first: a record
 * lock of POSIX. It ends with this process, and when this process closes any descriptor of that
 * file.
 * @returns false when another process has the lock
 */
export function tryLockRecord(fd: number): boolean {
  const result = numberOf(cFcntl(fd, F_SETLK, WHOLE_FILE_WRITE_LOCK));
  const code = result < 0 ? getSystemErrorName(-koffi.errno()) : '';
  if (code === 'EAGAIN' || code === 'EACCES') return false;
  checked('fcntl F_SETLK', result);
  return true;
}

/**
 * Locks an open file as QEMU's block layer locks the images that it has open: a record lock that
 * belongs to the open file, not to this process. No machine has the file then, or gets it, until
 * the descriptor is closed.
 * @param fd open for writing
 * @returns false when somebody has it
 */
export function tryLockImage(fd: number): boolean {
  const result = numberOf(cFcntl(fd, F_OFD_SETLK, WHOLE_FILE_WRITE_LOCK));
  const code = result < 0 ? getSystemErrorName(-koffi.errno()) : '';
  if (code === 'EAGAIN' || code === 'EACCES') return false;
  checked('fcntl F_OFD_SETLK', result);
  return true;
}

/**
 * Forgets what memory holds of a file that was synced, so that whoever reads it reads the disk. A
 * file system without one, as tmpfs is, forgets nothing.
 */
export function dropCached(fd: number): void {
  // The code itself, and no errno.
  const code = numberOf(cPosixFadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
  if (code !== 0) throw new Error(`posix_fadvise failed: ${getSystemErrorName(-code)}`);
}

/**
 * The next piece of a sparse file that is no hole, at or behind a place; null where only a hole
 * follows. Moves the descriptor's own position.
 */
export function findData(
  fd: number,
  from: number,
): { readonly start: number; readonly end: number } | null {
  const start = Number(cLseek(fd, from, SEEK_DATA));
  if (start < 0 && getSystemErrorName(-koffi.errno()) === 'ENXIO') return null;
  const end = Number(cLseek(fd, checked('lseek SEEK_DATA', start), SEEK_HOLE));
  return { start, end: checked('lseek SEEK_HOLE', end) };
}

/**
 * Whether a byte of an open file is locked the same way by somebody else, for reading or writing.
 */
export function isByteLocked(fd: number, offset: number): boolean {
  const lock = Buffer.from(WHOLE_FILE_WRITE_LOCK);
  lock.writeBigInt64LE(BigInt(offset), 8);
  lock.writeBigInt64LE(1n, 16);
  checked('fcntl F_OFD_GETLK', cFcntl(fd, F_OFD_GETLK, lock));
  return lock.readInt16LE(0) !== F_UNLCK;
}

/**
 * Runs a synchronous function with this thread inside another network namespace: sockets and TAPs
 * that it creates stay there.
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
 * Creates a TAP in the current network namespace. It lives as long as a descriptor of it: whoever
 * holds the last one, holds the TAP.
 * @returns a descriptor with IFF_VNET_HDR, fit for QEMU's `-netdev tap,fd=`
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
  /** Null listens on every device; a socket of one device goes before it. */
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
   * For IPv4: lets a socket of every device and those of single devices share a port, and binds to
   * an address that the host does not have yet. All of them must be opened so, by one user.
   */
  readonly isShared?: boolean;
}

/**
 * A socket that hears only what arrives on one device (SO_BINDTODEVICE; unprivileged processes may
 * set it once).
 * @returns a bound (tcp: listening) non-blocking descriptor for `server.listen({ fd })` or
 * `dgram.bind({ fd })`
 * @throws Error with `code` ENODEV when there is no such device, EADDRNOTAVAIL when it does not
 * have the address (yet)
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
 * TTL (IPv4) or hop limit (IPv6) of everything that a socket sends; accepted sockets inherit it
 * from the listening one.
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
 * An IPv4 TCP socket, not connected yet, whose packets leave through one device whatever the routes
 * say.
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
 * Sends TCP segments as they are, each to an address, from one that the host has, through one device.
 * @param from IPv4 or link-local IPv6, as all of `to`
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

/** 4 or 16 bytes of an IP address as it is written. */
export function addressBytes(address: string): Buffer {
  return address.includes(':') ? expandIpv6(address) : Buffer.from(address.split('.').map(Number));
}

/**
 * An empty file without a path, for reading and writing; its content is in memory and goes with the
 * last descriptor.
 */
export function createMemoryFile(name: string): number {
  return checked('memfd_create', cMemfdCreate(name, MFD_CLOEXEC));
}

/** sys/un.h: sun_path has 108 bytes and a NUL. */
export const MAX_UNIX_PATH_BYTES = 107;

/**
 * A listening unix socket, for a child that is to accept on it without being able to reach its
 * path.
 * @returns a non-blocking descriptor
 */
export function openUnixListener(path: string): number {
  const address = unixAddress(path);
  const fd = checked('socket', cSocket(AF_UNIX, SOCK_STREAM | SOCK_FLAGS, 0));
  try {
    checked('bind', cBind(fd, address, address.length));
    checked('listen', cListen(fd, 8));
    return fd;
  } catch (error) {
    closeFd(fd);
    throw error;
  }
}

/**
 * An unconnected unix socket for datagrams.
 * @param path where it can be sent to; null for one that only sends
 * @returns a non-blocking descriptor
 */
export function openUnixDatagrams(path: string | null): number {
  const fd = checked('socket', cSocket(AF_UNIX, SOCK_DGRAM | SOCK_FLAGS, 0));
  if (path === null) return fd;
  try {
    const address = unixAddress(path);
    checked('bind', cBind(fd, address, address.length));
    return fd;
  } catch (error) {
    closeFd(fd);
    throw error;
  }
}

/**
 * A unix socket that is connected to one that listens, for a `Socket` that takes it over; of
 * datagrams, each write to it is one.
 * @returns a non-blocking descriptor
 * @throws Error with `code` ENOENT, ECONNREFUSED, EAGAIN (it does not accept)
 */
export function openUnixClient(path: string, kind: 'stream' | 'datagrams' = 'stream'): number {
  const type = (kind === 'stream' ? SOCK_STREAM : SOCK_DGRAM) | SOCK_FLAGS;
  const fd = checked('socket', cSocket(AF_UNIX, type, 0));
  try {
    const address = unixAddress(path);
    checked('connect', cConnect(fd, address, address.length));
    return fd;
  } catch (error) {
    closeFd(fd);
    throw error;
  }
}

/** Two ends of a connection that has no name; the caller owns and closes both. */
export function openSocketPair(): readonly [number, number] {
  const pair = [-1, -1];
  checked('socketpair', cSocketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  const [left = -1, right = -1] = pair;
  return [left, right];
}

/** @throws Error with `code` ENODEV */
export function interfaceIndex(device: string): number {
  const index = numberOf(cIfNametoindex(device));
  if (index === 0) throw Object.assign(new Error(`no such device: ${device}`), { code: 'ENODEV' });
  return index;
}

/** A `struct sockaddr_un`. */
export function unixAddress(path: string): Buffer {
  if (Buffer.byteLength(path) > MAX_UNIX_PATH_BYTES)
    throw new RangeError(`unix socket path too long: ${path}`);
  const address = Buffer.alloc(2 + MAX_UNIX_PATH_BYTES + 1);
  address.writeUInt16LE(AF_UNIX, 0);
  address.write(path, 2);
  return address;
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

/**
 * Size of the core files of this process and of those that it starts, for good. One that is lower
 * already stays where it may not be raised.
 */
export function setCoreLimit(bytes: number): void {
  const limits = new BigUint64Array([BigInt(bytes), BigInt(bytes)]);
  const result = numberOf(cSetrlimit(RLIMIT_CORE, Buffer.from(limits.buffer)));
  if (result < 0 && getSystemErrorName(-koffi.errno()) === 'EPERM') return;
  checked('setrlimit', result);
}

/** Until this process executes another program: no cores, no tracing but by root. */
export function setUndumpable(): void {
  checked('prctl', cPrctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}
