import { AppError } from '#shared/errors/app-error.ts';

/* Refusals for a node that brings an instance. */

export function nothingArrives(): AppError {
  return new AppError('NOT_FOUND', 'this node expects no arrival of this instance any longer', {
    hint: 'gnt-noded was restarted meanwhile, or the sender was silent for ten minutes. Repeat the move.',
  });
}

export function isNotYours(name: string, from: string | undefined): AppError {
  return new AppError(
    'NOT_ALLOWED',
    `'${name}' does not belong to ${from ?? 'this node'}, which offers it`,
    {
      hint: 'Start the move on the node that has the instance: gnt-instance move',
    },
  );
}

export function isHere(name: string, node: string): AppError {
  return new AppError('INSTANCE_STATE', `instance '${name}' is already on node ${node}`);
}
