import type { DoctorFinding } from '#shared/contract/api.ts';
import { supplySecrets } from '#shared/contract/supply-secrets.ts';

/** A running guest, and the names of the secrets that it cannot read. */
export interface LostSecretsFacts {
  readonly instance: string;
  readonly names: readonly string[];
}

/** Names the running guests whose secrets are lost. Pure. */
export function examineSecrets(facts: readonly LostSecretsFacts[]): DoctorFinding {
  const check = 'lost-secrets';
  const affected = facts.filter(({ names }) => names.length > 0);
  const [first] = affected;
  if (first === undefined)
    return { check, level: 'ok', message: 'no running guest lacks its secrets', hint: null };
  const list = affected.map(({ instance, names }) => `${instance} (${names.join(', ')})`);
  return {
    check,
    level: 'warning',
    message: `running guests that cannot read their secrets: ${list.join(', ')}`,
    hint: supplySecrets(first.instance, first.names),
  };
}
