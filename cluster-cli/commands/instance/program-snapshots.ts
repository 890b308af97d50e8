import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { addCommand, jobOptions, option } from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { SubmitOptions } from '../submit.ts';
import type { ForceOptions } from '../confirm-loss.ts';

const GROUP = 'Snapshots:';
const NAME = { name: 'Name of the instance' } as const;
const BOTH = { ...NAME, snapshot: 'Name of the snapshot' } as const;
const ONE = { group: GROUP, arguments: BOTH, completeArguments: ['instance'] } as const;
type SnapshotOptions = SubmitOptions & { readonly copy?: true };
const load = () => import('./snapshots.ts');

/** Adds snapshot, list-snapshots, restore-snapshot and remove-snapshot. */
export function addSnapshots(program: Command, context: Context): void {
  const job = jobOptions();
  const force = option('-f, --force', 'Do not ask; required without a terminal', {
    group: 'Job:',
  });
  addCommand(program, {
    ...ONE,
    usage: 'snapshot <name> <snapshot>',
    summary: 'Take a snapshot of all disks, also of a running instance',
    description:
      'Takes a snapshot of all disks at the same moment. The snapshot shares its blocks with the disks and grows with later changes. It does not contain the memory of the guest: a restored disk is as after a power failure.',
    explanation: [
      'Disks that are files need a file system that shares blocks (btrfs, XFS); LVM volumes need a thin pool; ZFS volumes need nothing. On other file systems --copy copies the disks. LVM volumes outside a thin pool are refused.',
      'The guest of a running instance stands still: for milliseconds with files, for some tenths of a second per disk with LVM and ZFS, and for the whole copy with --copy.',
      'A snapshot contains everything on the disks, including secrets.',
    ],
    options: [
      option('--copy', 'Copy the disks where blocks cannot be shared; some seconds per GiB', {
        group: 'Snapshot:',
      }),
      ...job,
    ],
    examples: [
      'gnt-instance snapshot web1 before-upgrade',
      'gnt-instance snapshot --copy web1 before-upgrade',
    ],
  }).action(async (name: string, snapshot: string, options: SnapshotOptions) => {
    await (await load()).runSnapshot(context, name, snapshot, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'list-snapshots <name>',
    summary: 'List the snapshots of an instance',
    options: listOptions(),
  }).action(async (name: string, options: ListOptions) => {
    await (await load()).runListSnapshots(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'restore-snapshot <name> <snapshot>',
    summary: 'Set the disks of a stopped instance back to a snapshot',
    description:
      'Discards everything that was written since the snapshot. The snapshot and the parameters of the instance stay. Refused if disks were added or removed since.',
    options: [force, ...job],
    examples: ['gnt-instance shutdown web1 && gnt-instance restore-snapshot web1 before-upgrade'],
  }).action(async (name: string, snapshot: string, options: ForceOptions) => {
    await (await load()).runRestoreSnapshot(context, name, snapshot, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'remove-snapshot <name> <snapshot>',
    summary: 'Remove a snapshot; the disks stay as they are',
    options: [force, ...job],
  }).action(async (name: string, snapshot: string, options: ForceOptions) => {
    await (await load()).runRemoveSnapshot(context, name, snapshot, options);
  });
}
