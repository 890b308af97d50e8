import { createGuestEvents } from '../../../noded/instances/reports/guest-events.ts';
import { collectRunLists } from '../../../noded/instances/run-lists/collect-run-lists.ts';
import { createLifecycles } from '../../../noded/instances/run-lists/lifecycles.ts';
import type {
  Lifecycles,
  LifecyclesDependencies,
} from '../../../noded/instances/run-lists/lifecycles-contract.ts';
import { silentLogger } from '#shared/log/log.ts';
import { ManualClock } from './manual-clock.ts';

/** The lifecycles of instances, which have their own run lists and no others. */
export function createLabLifecycles(given: Partial<LifecyclesDependencies> = {}): Lifecycles {
  return createLifecycles({
    instances: {
      findByUuid: () => Promise.resolve(undefined),
      update: () => Promise.reject(new Error('nothing is stored here')),
    },
    machines: {
      get: () => undefined,
      // Its machine never ends here.
      whenGone: () => new Promise(() => undefined),
      kill: () => Promise.resolve(),
      publish: () => Promise.resolve(),
    },
    guestEvents: createGuestEvents(),
    collect: ({ runLists }) =>
      collectRunLists({ clusterDir: '/nonexistent', osPath: null, own: runLists }),
    audit: { append: () => Promise.resolve() },
    logger: silentLogger,
    clock: new ManualClock(),
    ...given,
  });
}
