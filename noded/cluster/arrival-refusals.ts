import { AppError } from '#shared/errors/app-error.ts';

/* How whoever brings an instance to this node is refused. */

export function nothingArrives(): AppError {
  return new AppError('NOT_FOUND', 'nothing of this instance is arriving any more', {
    hint: 'gnt-noded was started anew meanwhile, or heard nothing for ten minutes: repeat the move',
  });
}

export function isNotYours(name: string, from: string | undefined): AppError {
  return new AppError('NOT_ALLOWED', `'${name}' is not given away by ${from ?? 'this node'}`, {
    hint: 'the node that has an instance moves it: gnt-instance move',
  });
}

export function isHere(name: string, node: string): AppError {
  return new AppError('INSTANCE_STATE', `instance '${name}' is already on the node ${node}`);
}
