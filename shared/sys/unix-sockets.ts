import { checked, closeFd, libc } from './libc.ts';
import {
  cSocket,
  cBind,
  cListen,
  SOCK_STREAM,
  SOCK_DGRAM,
  SOCK_CLOEXEC,
  SOCK_FLAGS,
} from './socket-calls.ts';

const cConnect = libc.func('int connect(int fd, const void *address, uint32_t length)');
const cSocketpair = libc.func(
  'int socketpair(int domain, int type, int protocol, _Out_ int *descriptors)',
);
const AF_UNIX = 1;

/** sys/un.h: sun_path has 108 bytes and a NUL. */
export const MAX_UNIX_PATH_BYTES = 107;

/**
 * Opens a listening unix socket for a child that accepts on it without access to its path.
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
 * Opens an unconnected unix datagram socket.
 * @param path its address; null for a socket that only sends
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
 * Opens a unix socket and connects it, for a `Socket` that takes it over. With datagrams, each
 * write is one.
 * @returns a non-blocking descriptor
 * @throws Error with `code` ENOENT, ECONNREFUSED, EAGAIN (its backlog is full)
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

export function openSocketPair(): readonly [number, number] {
  const pair = [-1, -1];
  checked('socketpair', cSocketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
  const [left = -1, right = -1] = pair;
  return [left, right];
}

export function unixAddress(path: string): Buffer {
  if (Buffer.byteLength(path) > MAX_UNIX_PATH_BYTES)
    throw new RangeError(`unix socket path too long: ${path}`);
  const address = Buffer.alloc(2 + MAX_UNIX_PATH_BYTES + 1);
  address.writeUInt16LE(AF_UNIX, 0);
  address.write(path, 2);
  return address;
}
