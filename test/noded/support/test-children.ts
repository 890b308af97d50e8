import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import {
  createChildSupervisor,
  type ChildSupervisor,
} from '../../../noded/host/child-supervisor.ts';

/** Real ones, on record in this folder. */
export function createTestChildren(dir: string): ChildSupervisor {
  return createChildSupervisor({ dir, logger: silentLogger, clock: systemClock });
}
