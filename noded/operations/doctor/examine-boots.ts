import type { DoctorFinding } from '#shared/contract/api.ts';
import type { RunningBootEnv } from '#shared/contract/instance.ts';
import { type Check, ok, warning } from './check.ts';

interface BootFacts {
  readonly instance: string;
  readonly bootEnv: RunningBootEnv;
}

export const checkBoots: Check = ({ guests }) =>
  examineBoots(
    guests.keeper.list().flatMap(({ machine, instanceName }) => {
      const bootEnv = guests.bootViews.state(machine.uuid);
      return bootEnv === null ? [] : [{ instance: instanceName, bootEnv }];
    }),
  );

/**
 * Checks that guests that boot from their channels get the content that the store has now. Pure.
 */
export function examineBoots(facts: readonly BootFacts[]): DoctorFinding {
  const stale = facts.filter(({ bootEnv }) => bootEnv.failure !== null || bootEnv.lost.length > 0);
  const check = 'boot-environments';
  const [first] = stale;
  if (first === undefined)
    return ok(check, `${facts.length} guest(s) boot from their channel as configured`);
  const names = stale.map(({ instance, bootEnv }) => `${instance} (${bootEnv.name})`);
  return warning(
    check,
    `guests with outdated or incomplete boot files: ${names.join(', ')}`,
    `gnt-instance info ${first.instance} shows the reason. Its next start is refused until its boot environment renders.`,
  );
}
