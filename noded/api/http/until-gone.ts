import type { ServerResponse } from 'node:http';
import { AppError } from '#shared/errors/app-error.ts';

/** A signal that is aborted when the client is gone, or has its answer. */
export function untilGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const reason = new AppError('INTERRUPTED', 'the client disconnected');
  response.once('close', () => controller.abort(reason));
  return controller.signal;
}
