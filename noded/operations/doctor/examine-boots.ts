import type { DoctorFinding } from '#shared/contract/api.ts';
import type { RunningBootEnv } from '#shared/contract/instance.ts';

/** A guest that runs, and what it is given to boot by. */
export interface BootFacts {
  readonly instance: string;
  readonly bootEnv: RunningBootEnv;
}

/** Whether the guests that boot from their channels are given what the store says now. Pure. */
export function examineBoots(facts: readonly BootFacts[]): DoctorFinding {
  const stale = facts.filter(({ bootEnv }) => bootEnv.failure !== null || bootEnv.lost.length > 0);
  const [first] = stale;
  if (first === undefined) {
    const message = `${facts.length} guest(s) boot from their channel as configured`;
    return { check: 'boot-environments', level: 'ok', message, hint: null };
  }
  const names = stale.map(({ instance, bootEnv }) => `${instance} (${bootEnv.name})`);
  return {
    check: 'boot-environments',
    level: 'warning',
    message: `guests with outdated or incomplete boot files: ${names.join(', ')}`,
    hint: `gnt-instance info ${first.instance} shows the reason. Its next start is refused until its boot environment renders.`,
  };
}
