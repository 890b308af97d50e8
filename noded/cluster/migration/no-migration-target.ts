import { AppError } from '#shared/errors/app-error.ts';
import type { Arrivals } from './migration-target-contract.ts';

/** Arrivals of a node that has no others beside it: every one is refused. */
export function noArrivals(): Arrivals {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new AppError(
        'NOT_SUPPORTED',
        'this node is a cluster of its own: other nodes cannot send instances',
      ),
    );
  return {
    ...{ check: refuse, begin: refuse, write: refuse, verify: refuse, end: refuse },
    ...{ expect: refuse, handOver: refuse, sync: refuse, openStream: refuse, awaitGuest: refuse },
    endRemains: refuse,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
