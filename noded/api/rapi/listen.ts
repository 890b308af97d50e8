import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { AppError, messageOf } from '#shared/errors/app-error.ts';

/**
 * Listens on the address of an option, and returns the port.
 * @throws AppError CONFLICT
 */
export async function listen(
  server: Server,
  option: string,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new AppError('CONFLICT', `${option} ${host}:${port}: ${messageOf(error)}`, {
          hint: 'Give an address of this host and a free port.',
          cause: error,
        }),
      ),
    );
    server.listen(port, host, () => resolve());
  });
  // A TCP server's address is an object.
  return (server.address() as AddressInfo).port;
}
