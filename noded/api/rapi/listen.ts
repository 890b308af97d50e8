import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { AppError, messageOf } from '#shared/errors/app-error.ts';

export interface Listening extends AsyncDisposable {
  readonly port: number;
}

/**
 * Listens on the address of an option. Disposing of the result closes all connections.
 * @throws AppError CONFLICT
 */
export async function listen(
  server: Server | TlsServer,
  option: string,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Listening> {
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
  return {
    // A TCP server's address is an object.
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
