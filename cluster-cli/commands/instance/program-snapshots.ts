import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { addCommand, jobOptions, option } from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { SubmitOptions } from '../submit.ts';
import type { ForceOptions } from '../confirm-loss.ts';

const NAME = { name: 'name of the instance' } as const;
const BOTH = { ...NAME, snapshot: 'name of the snapshot' } as const;
type SnapshotOptions = SubmitOptions & { readonly copy?: true };
const load = () => import('./snapshots.ts');

/** snapshot, list-snapshots, restore-snapshot and remove-snapshot. */
export function addSnapshots(program: Command, context: Context): void {
  const job = jobOptions();
  const force = option('-f, --force', 'do not ask; off a terminal it is refused without it', {
    group: 'Job:',
  });
  addCommand(program, {
    usage: 'snapshot <name> <snapshot>',
    arguments: BOTH,
    completeArguments: ['instance'],
    summary: 'keep a moment of the disks, of a running instance too',
    description:
      'All disks in the same moment, sharing their blocks with the snapshot: that takes no room but for what is changed later. Disks that are files need a file system that can share blocks (btrfs, xfs), LVM volumes a thin pool; ZFS volumes nothing. On other file systems, --copy copies all that the disks hold; LVM volumes outside of a pool are refused. The guest of a running instance stands still for it, for milliseconds with files, for some tenths of a second for each disk with LVM and ZFS, for as long as it takes with --copy; what it has in memory is not in the snapshot, which is like its disks after a power cut. What the guest keeps on its disks is in it, its secrets included; nothing else is.',
    options: [
      option(
        '--copy',
        'where the file system cannot share blocks, copy the disks: a guest that runs stands still for some seconds for each GiB that it has written, and as much room is taken; restoring it takes the same once more',
      ),
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
    usage: 'list-snapshots <name>',
    arguments: NAME,
    completeArguments: ['instance'],
    summary: 'list the snapshots of an instance',
    options: listOptions(),
  }).action(async (name: string, options: ListOptions) => {
    await (await load()).runListSnapshots(context, name, options);
  });
  addCommand(program, {
    usage: 'restore-snapshot <name> <snapshot>',
    arguments: BOTH,
    completeArguments: ['instance'],
    summary: 'make the disks of a stopped instance be those of a snapshot again',
    description:
      'What was written since is lost, unless it is in another snapshot. The snapshot stays, and so does all that is stored of the instance. Refused when disks were added or removed since.',
    options: [force, ...job],
    examples: ['gnt-instance shutdown web1 && gnt-instance restore-snapshot web1 before-upgrade'],
  }).action(async (name: string, snapshot: string, options: ForceOptions) => {
    await (await load()).runRestoreSnapshot(context, name, snapshot, options);
  });
  addCommand(program, {
    usage: 'remove-snapshot <name> <snapshot>',
    arguments: BOTH,
    completeArguments: ['instance'],
    summary: 'remove a snapshot; the disks stay as they are',
    options: [force, ...job],
  }).action(async (name: string, snapshot: string, options: ForceOptions) => {
    await (await load()).runRemoveSnapshot(context, name, snapshot, options);
  });
}
