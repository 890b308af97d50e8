import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError } from '#shared/errors/app-error.ts';
import type { ApiDependencies } from './api-dependencies.ts';
import { forwardUpgrade } from './forward.ts';
import { describeApiError, httpStatusOf, toAppError } from './http-errors.ts';

const MAX_PORT = 65_535;

/** `…/connect/{port}` and `…/console`: after 101 the connection is a raw stream. */
export async function openRawStream(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  dependencies: ApiDependencies,
): Promise<void> {
  socket.on('error', () => socket.destroy());
  try {
    const { forwarding } = dependencies;
    if (forwarding !== null && (await forwardUpgrade(request, socket, head, forwarding))) return;
    const target = await openTarget(request.url ?? '', dependencies);
    target.on('error', () => socket.destroy());
    // Who asked may have gone while it was being opened.
    if (socket.destroyed) {
      target.destroy();
      return;
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    if (head.length > 0) target.write(head);
    socket.pipe(target);
    target.pipe(socket);
    socket.on('close', () => target.destroy());
    target.on('close', () => socket.end());
  } catch (error) {
    const known = toAppError(error, dependencies.logger);
    const body = JSON.stringify(describeApiError(known));
    socket.end(
      `HTTP/1.1 ${httpStatusOf(known.code)} Refused\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
}

async function openTarget(url: string, dependencies: ApiDependencies): Promise<Duplex> {
  const [path = ''] = url.split('?');
  const match = /^\/v1\/instances\/([a-z0-9.-]+)\/(?:connect\/(\d+)|(console))$/.exec(path);
  if (match === null) throw new AppError('NOT_FOUND', `there is no stream at ${path}`);
  const [, name = '', port] = match;
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= MAX_PORT)) {
    throw new AppError('VALIDATION', `port: expected a number from 1 to ${MAX_PORT}, not ${port}`);
  }
  const instance = await dependencies.instances.findByName(name);
  const kept = dependencies.keeper.get(instance.uuid);
  if (kept === undefined) {
    throw new AppError('INSTANCE_STATE', `instance '${instance.name}' is not running`, {
      hint: `gnt-instance startup ${instance.name}`,
    });
  }
  if (port === undefined) return connectUnix(kept.machine.consoleSocket);
  if (kept.device === null) {
    throw new AppError('INSTANCE_STATE', `the channel of instance '${instance.name}' is off`, {
      hint: `gnt-instance modify --communication yes ${instance.name}, then reboot it`,
    });
  }
  return dependencies.metad.connect(instance.uuid, Number(port));
}

function connectUnix(path: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', (error) =>
      reject(
        new AppError('CONFLICT', `the console cannot be opened: ${error.message}`, {
          cause: error,
        }),
      ),
    );
  });
}
