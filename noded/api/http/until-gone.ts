import type { ServerResponse } from 'node:http';
import { AppError } from '#shared/errors/app-error.ts';

/** Returns a signal that aborts when the client disconnects or has its answer. */
export function untilGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const reason = new AppError('INTERRUPTED', 'the client disconnected');
  response.once('close', () => controller.abort(reason));
  return controller.signal;
}
