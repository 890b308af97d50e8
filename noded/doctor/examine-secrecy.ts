import type { DoctorFinding } from '#shared/contract/api.ts';
import type { SecrecyFacts } from './secrecy-facts.ts';

/** Whether what is to be in memory alone could get to a disk. */
export function examineSecrecy(facts: SecrecyFacts): readonly DoctorFinding[] {
  return [checkSwap(facts), checkCores(facts)];
}

function checkSwap({ swaps, swappable }: SecrecyFacts): DoctorFinding {
  const check = 'swap';
  if (swaps.length === 0) return ok(check, 'there is no swap: secrets stay in memory');
  const open = swaps.filter(({ isSafe }) => !isSafe).map(({ name }) => name);
  if (open.length === 0) return ok(check, 'swap is encrypted, or memory itself');
  if (swappable.length === 0)
    return ok(check, `the daemons and their machines are kept out of swap (${open.join(', ')})`);
  return {
    check,
    level: 'warning',
    message: `secrets in the memory of ${swappable.join(' and ')} may be written to ${open.join(', ')}, which is not encrypted`,
    hint: 'run gnt-noded by its service, which has MemorySwapMax=0 (by hand: systemd-run --scope -p MemorySwapMax=0 gnt-noded); or encrypt the swap, or swapoff -a',
  };
}

function checkCores({ corePattern, dumpable }: SecrecyFacts): DoctorFinding {
  const check = 'core-dumps';
  const isProgram = corePattern.startsWith('|');
  const where = isProgram ? `a program (${corePattern.trim()})` : 'files';
  if (dumpable.length === 0)
    return ok(check, `cores go to ${where}; the daemons and their machines leave none`);
  return {
    check,
    level: 'warning',
    message: `cores go to ${where}, and one of ${dumpable.join(' or ')} would hold secrets`,
    hint: 'it was started by an earlier release: restart it when no instance runs',
  };
}

function ok(check: string, message: string): DoctorFinding {
  return { check, level: 'ok', message, hint: null };
}
