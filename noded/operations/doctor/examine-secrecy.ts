import type { DoctorFinding } from '#shared/contract/api.ts';
import { type Check, ok, warning } from './check.ts';
import { collectSecrecyFacts, type SecrecyFacts } from './secrecy-facts.ts';

export const checkSecrecy: Check = ({ guests }) =>
  examineSecrecy(collectSecrecyFacts(guests.metad.pid));

/** Examines whether secrets in memory could reach a disk. */
export function examineSecrecy(facts: SecrecyFacts): readonly DoctorFinding[] {
  return [checkSwap(facts), checkCores(facts)];
}

function checkSwap({ swaps, swappable }: SecrecyFacts): DoctorFinding {
  const check = 'swap';
  if (swaps.length === 0) return ok(check, 'no swap: secrets stay in memory');
  const open = swaps.filter(({ isSafe }) => !isSafe).map(({ name }) => name);
  if (open.length === 0) return ok(check, 'swap is encrypted or in memory');
  if (swappable.length === 0)
    return ok(check, `the daemons and their instances are kept out of swap (${open.join(', ')})`);
  return warning(
    check,
    `secrets in the memory of ${swappable.join(' and ')} may reach ${open.join(', ')}, which is not encrypted`,
    'Run gnt-noded as its service, which sets MemorySwapMax=0 (by hand: systemd-run --scope -p MemorySwapMax=0 gnt-noded), or encrypt the swap, or run swapoff -a',
  );
}

function checkCores({ corePattern, dumpable }: SecrecyFacts): DoctorFinding {
  const check = 'core-dumps';
  const isProgram = corePattern.startsWith('|');
  const where = isProgram ? `a program (${corePattern.trim()})` : 'files';
  if (dumpable.length === 0)
    return ok(check, `core dumps go to ${where}; the daemons and their instances write none`);
  return warning(
    check,
    `core dumps go to ${where}, and a dump of ${dumpable.join(' or ')} would contain secrets`,
    'An earlier release started it. Restart it while no instance runs.',
  );
}
