import type { DoctorFinding } from '#shared/contract/api.ts';
import { supplySecrets } from '#shared/contract/supply-secrets.ts';
import { type Check, ok, warning } from './check.ts';

interface LostSecretsFacts {
  readonly instance: string;
  readonly names: readonly string[];
}

export const checkSecrets: Check = ({ guests }) =>
  examineSecrets(
    guests.keeper
      .list()
      .filter(({ kind }) => kind === 'run')
      .map(({ instanceName, lostSecrets }) => ({ instance: instanceName, names: lostSecrets })),
  );

export function examineSecrets(facts: readonly LostSecretsFacts[]): DoctorFinding {
  const check = 'lost-secrets';
  const affected = facts.filter(({ names }) => names.length > 0);
  const [first] = affected;
  if (first === undefined) return ok(check, 'no running guest lacks its secrets');
  const list = affected.map(({ instance, names }) => `${instance} (${names.join(', ')})`);
  return warning(
    check,
    `running guests that cannot read their secrets: ${list.join(', ')}`,
    supplySecrets(first.instance, first.names),
  );
}
