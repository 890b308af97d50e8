import { once } from 'node:events';
import { Socket } from 'node:net';
import { AppError, messageOf } from '#shared/errors/app-error.ts';
import { openDeviceClientSocket, setHopLimit } from '#shared/sys/network-sockets.ts';
import type { Instance } from '../channel/instance.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Connects to a TCP port of the guest, through its own device only.
 * @throws AppError GUEST_UNREACHABLE
 */
export async function connectToGuest(instance: Instance, port: number): Promise<Socket> {
  const { device, ip, hopLimit } = instance.view.channel;
  try {
    const socket = openSocket(device, hopLimit);
    socket.setNoDelay(true);
    try {
      socket.connect({ host: ip, port });
      await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) });
    } catch (error) {
      socket.on('error', () => undefined);
      socket.destroy();
      throw error;
    }
    return socket;
  } catch (error) {
    const isTimeout = error instanceof Error && error.name === 'AbortError';
    const reason = isTimeout ? `no answer within ${CONNECT_TIMEOUT_MS / 1000} s` : messageOf(error);
    throw new AppError(
      'GUEST_UNREACHABLE',
      `cannot connect to port ${port} of ${instance.view.name}: ${reason}`,
      { details: { port, instance: instance.view.uuid }, cause: error },
    );
  }
}

/** In Ganeti mode the view has no device: routes lead to the guest. */
function openSocket(device: string, hopLimit: number): Socket {
  if (device === '') return new Socket({ allowHalfOpen: true });
  const fd = openDeviceClientSocket(device);
  setHopLimit(fd, false, hopLimit);
  return new Socket({ fd, allowHalfOpen: true, readable: true, writable: true });
}
