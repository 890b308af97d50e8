import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { createKeptChildren, type KeptChildren } from '../../../noded/host/kept-children.ts';

/** Real ones, on record in this folder. */
export function createTestChildren(dir: string): KeptChildren {
  return createKeptChildren({ dir, logger: silentLogger, clock: systemClock });
}
