import type { Opcode } from '#shared/contract/opcode.ts';

/**
 * Returns the opcode of a user who is bound to instances, with NICs that reach only public
 * addresses: new NICs and those with a changed mode, link or network. Pure.
 */
export function confineNics<Op extends Opcode>(opcode: Op): Op;
export function confineNics(opcode: Opcode): Opcode {
  if (opcode.opcode === 'INSTANCE_CREATE')
    return { ...opcode, nics: opcode.nics.map((nic) => ({ ...nic, reach: 'public' as const })) };
  if (opcode.opcode !== 'INSTANCE_SET_PARAMS') return opcode;
  const nics = opcode.nics.map((change) => {
    if (change.action === 'remove') return change;
    if (change.action === 'add')
      return { ...change, nic: { ...change.nic, reach: 'public' as const } };
    const { reach: asked, ...changes } = change.changes;
    const isPlugged = ['mode', 'link', 'networkName'].some((key) => Object.hasOwn(changes, key));
    if (asked === undefined && !isPlugged) return change;
    return { ...change, changes: { ...changes, ...(isPlugged && { reach: 'public' as const }) } };
  });
  return { ...opcode, nics };
}
