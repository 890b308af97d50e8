import { AppError } from '#shared/errors/app-error.ts';
import type { MigrationTarget } from './migration-target-contract.ts';

/** Returns a MigrationTarget for a node without a common store, which refuses everything. */
export function noMigrationTarget(): MigrationTarget {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new AppError(
        'NOT_SUPPORTED',
        'this node is a cluster of its own: other nodes cannot send instances',
      ),
    );
  return {
    check: refuse,
    begin: refuse,
    write: refuse,
    openFile: refuse,
    verify: refuse,
    end: refuse,
    expect: refuse,
    handOver: refuse,
    sync: refuse,
    openStream: refuse,
    awaitGuest: refuse,
    endRemains: refuse,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
