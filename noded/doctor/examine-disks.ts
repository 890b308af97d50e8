import type { DoctorFinding } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { GIB } from '#shared/units/bytes.ts';

/** The others are counted. */
const MAX_NAMED = 10;

export interface DiskFacts {
  /** Instances of this node. */
  readonly instances: readonly Pick<InstanceRecord, 'name' | 'disks' | 'snapshots'>[];
  /** Of the file system of their disks. */
  readonly totalBytes: number;
  /** UUIDs that disks are named after, and that no record has. */
  readonly ofNobody: readonly string[];
  /** Names of those whose guests were stopped at a write. */
  readonly halted: readonly string[];
}

/** Disks are sparse: what they may grow to counts, not what they take now. */
export function examineDisks({
  instances,
  totalBytes,
  ofNobody,
  halted,
}: DiskFacts): readonly DoctorFinding[] {
  const promised = instances
    // A block that a disk shares with its snapshot is the snapshot's alone once it is written anew.
    .flatMap(({ disks, snapshots }) => [...disks, ...snapshots.flatMap((one) => one.disks)])
    .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const sizes = `disks of ${instances.length} instance(s) may grow to ${toGib(promised)} on a file system of ${toGib(totalBytes)}`;
  const isOver = promised > totalBytes;
  return [
    {
      check: 'disk-overcommit',
      level: isOver ? 'warning' : 'ok',
      message: isOver ? `${sizes}: a guest that finds it full stands still` : sizes,
      hint: isOver
        ? 'make the file system larger, or remove instances; guests go on by themselves when there is room again'
        : null,
    },
    {
      check: 'paused',
      level: halted.length === 0 ? 'ok' : 'warning',
      message:
        halted.length === 0
          ? 'no guest stands still'
          : `guests were stopped at a write that failed: ${halted.join(', ')}`,
      hint:
        halted.length === 0
          ? null
          : 'make room on the file system of the disks: they go on by themselves',
    },
    {
      check: 'disks-of-nobody',
      level: ofNobody.length === 0 ? 'ok' : 'warning',
      message:
        ofNobody.length === 0
          ? 'all disks belong to an instance'
          : `disks without a record, untouched: ${ofNobody.slice(0, MAX_NAMED).join(', ')}${ofNobody.length > MAX_NAMED ? ` and ${ofNobody.length - MAX_NAMED} more` : ''}`,
      hint:
        ofNobody.length === 0
          ? null
          : 'the store has lost what it knew of them: restore it from a backup; or else move away or remove their folders',
    },
  ];
}

function toGib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
