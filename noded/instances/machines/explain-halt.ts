import type { InstanceRecord } from '#shared/contract/instance.ts';
import { poolsOf } from '../../storage/drivers/volumes/thin-pools.ts';
import type { GuestHalt } from '../../vmm/machine.ts';

/** Explains why QEMU paused a guest. */
export function explainHalt(
  { name, primaryNode, disks }: Pick<InstanceRecord, 'name' | 'primaryNode' | 'disks'>,
  halt: Pick<GuestHalt, 'reason'> | null | undefined,
): string {
  const pools = poolsOf(disks);
  const names = pools.map((pool) => pool.name).join(', ');
  const place = pools.length === 0 ? 'the file system of the disks' : names;
  const hints = pools.map(({ hint }) => hint).join('; ');
  const remedy = pools.length === 0 ? 'Free space there.' : hints;
  return halt?.reason === 'disk-full'
    ? `paused at a write: ${place} is full on ${primaryNode}. The guest resumes by itself, without loss, when there is space. ${remedy}`
    : `paused at a failed write on ${primaryNode}: check its storage. Power it off: gnt-instance shutdown --timeout 0 ${name}`;
}
