import koffi from 'koffi';
import { systemCodeOf } from '../errors/app-error.ts';
import { checked } from './libc.ts';
import { SOL_SOCKET } from './network-sockets.ts';
import { unixAddress } from './unix-sockets.ts';

/** Descriptors of open files in messages between processes (unix(7), SCM_RIGHTS). */
const libc = koffi.load('libc.so.6');
koffi.struct('gnt_iovec', { base: 'void *', length: 'size_t' });
koffi.struct('gnt_msghdr', {
  name: 'const void *',
  nameLength: 'uint32_t',
  iov: 'gnt_iovec *',
  iovCount: 'size_t',
  control: 'void *',
  controlLength: 'size_t',
  flags: 'int',
});
const cSendmsg = libc.func('int64_t sendmsg(int fd, const gnt_msghdr *message, int flags)');
const cRecvmsg = libc.func('int64_t recvmsg(int fd, const gnt_msghdr *message, int flags)');

const SCM_RIGHTS = 1;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x40000000;
/** struct cmsghdr with one descriptor: its length, level and type, the descriptor, padding. */
const CONTROL_BYTES = 24;
/** The length without the padding, into which the kernel would put a second descriptor. */
const CONTROL_LENGTH = 20;

/**
 * Sends a text through a unix socket, with a copy of a descriptor.
 * @param to path of the receiving socket; none for a connected socket
 * @throws Error with `code` EAGAIN when the receiver's queue is full, ECONNREFUSED
 */
export function sendDescriptor(socket: number, text: string, fd: number, to?: string): void {
  const control = Buffer.alloc(CONTROL_BYTES);
  control.writeBigUInt64LE(BigInt(CONTROL_LENGTH), 0);
  control.writeInt32LE(SOL_SOCKET, 8);
  control.writeInt32LE(SCM_RIGHTS, 12);
  control.writeInt32LE(fd, 16);
  const base = Buffer.from(text);
  const message = {
    ...messageOf(base, control, CONTROL_BYTES),
    ...(to !== undefined && nameOf(to)),
  };
  const sent = checked('sendmsg', cSendmsg(socket, message, MSG_NOSIGNAL));
  if (sent < base.length) throw new Error('a message was sent only in part');
}

/**
 * Receives a text from a non-blocking unix datagram socket, and its descriptor.
 * @returns null without a message; the caller closes `fd`, which is null when none was sent
 */
export function receiveDescriptor(
  socket: number,
  maxBytes: number,
): { readonly text: string; readonly fd: number | null } | null {
  const base = Buffer.alloc(maxBytes);
  const control = Buffer.alloc(CONTROL_BYTES);
  let length: number;
  try {
    const message = messageOf(base, control, CONTROL_LENGTH);
    length = checked('recvmsg', cRecvmsg(socket, message, MSG_CMSG_CLOEXEC));
  } catch (error) {
    if (systemCodeOf(error) === 'EAGAIN') return null;
    throw error;
  }
  // The buffer fits one descriptor only: the kernel closes others.
  const hasOne =
    control.readBigUInt64LE(0) === BigInt(CONTROL_LENGTH) && control.readInt32LE(12) === SCM_RIGHTS;
  return { text: base.toString('utf8', 0, length), fd: hasOne ? control.readInt32LE(16) : null };
}

function messageOf(base: Buffer, control: Buffer, controlLength: number): object {
  return {
    name: null,
    nameLength: 0,
    iov: [{ base, length: base.length }],
    iovCount: 1,
    control,
    controlLength,
    flags: 0,
  };
}

function nameOf(path: string): object {
  const name = unixAddress(path);
  return { name, nameLength: name.length };
}
