import { libc } from './libc.ts';

export const cSocket = libc.func('int socket(int domain, int type, int protocol)');
export const cBind = libc.func('int bind(int fd, const void *address, uint32_t length)');
export const cListen = libc.func('int listen(int fd, int backlog)');
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;
export const SOCK_CLOEXEC = 0o2000000;
export const SOCK_FLAGS = SOCK_CLOEXEC | 0o4000; // SOCK_NONBLOCK
