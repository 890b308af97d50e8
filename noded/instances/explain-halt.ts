import type { InstanceRecord } from '#shared/contract/instance.ts';
import { poolsOf } from '../disks/volumes/thin-pools.ts';
import type { GuestHalt } from '../hypervisor/machine.ts';

/** What a guest waits for that QEMU has stopped. Pure. */
export function explainHalt(
  { name, primaryNode, disks }: Pick<InstanceRecord, 'name' | 'primaryNode' | 'disks'>,
  halt: Pick<GuestHalt, 'reason'> | null | undefined,
): string {
  const pools = poolsOf(disks);
  const names = pools.map((pool) => pool.name).join(', ');
  const place = pools.length === 0 ? 'the file system of the disks' : names;
  const hints = pools.map(({ hint }) => hint).join('; ');
  const make = pools.length === 0 ? 'make room there' : `make room there (${hints})`;
  return halt?.reason === 'disk-full'
    ? `stopped at a write: ${place} is full on ${primaryNode}; ${make}, and the guest goes on by itself, without a loss`
    : `stopped at a write that failed on ${primaryNode}: see what its storage says; gnt-instance shutdown --timeout 0 ${name} cuts the power`;
}
