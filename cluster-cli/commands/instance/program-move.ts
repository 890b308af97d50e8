import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { addCommand, jobOptions, option, wholeNumber } from '../../completion/command.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import type { SubmitOptions } from '../submit.ts';
import type { MigrateOptions } from './move.ts';

/** move, migrate and failover. */
export function addMove(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'move <name>',
    arguments: { name: 'name of the instance' },
    completeArguments: ['instance'],
    summary: 'move a stopped instance to another node, with its disks',
    description:
      'Everything that the cluster knows of it stays: UUID, instance id, addresses, run lists, parameters. The disks go over the sealed link between the nodes, without their holes; the other node reads them again before it gets the instance, and only then they are removed here. It is refused where the other node has no room, is drained, or lacks the OS definition, the image or another file that the instance names, and while the instance has snapshots. A link that is cut for less than five minutes is waited for. Logs of installations and scripts, and the audit log of its lifecycle, stay on the node that it leaves. What runs goes by migrate, and what a node that is down has on shared disks by failover.',
    options: [
      option('-n, --node <node>', 'where to; without it, where there is room', {
        complete: 'node',
      }),
      ...jobOptions(),
    ],
    examples: [
      'gnt-instance shutdown web1 && gnt-instance move -n node2.example.com web1 && gnt-instance startup web1',
    ],
  }).action(async (name: string, options: SubmitOptions & { readonly node?: string }) => {
    await (await import('./move.ts')).runMove(context, name, options);
  });
  addCommand(program, {
    usage: 'migrate <name>',
    arguments: { name: 'name of the instance' },
    completeArguments: ['instance'],
    summary: 'move a running instance to another node, while its guest goes on',
    description:
      'The other node makes the same machine, with channel and metadata, and lets it wait. Disks and then memory go over the sealed link between the nodes; when the little that is left of memory can go at once, the guest stands still for it, and goes on there: with its addresses, its instance id and its secrets, which pass from memory to memory. Open connections of the channel and of user-mode cards break. Without KVM it stands still for as long as its memory takes. Until the last step the job can be cancelled, and whatever fails leaves it running where it was. A guest that writes faster than the link takes it is slowed down, and may stand still longer and longer, up to ten seconds, which the job says. Refused before anything is changed: another version of QEMU, another accelerator or processor, no room, a drained node, snapshots, UEFI firmware, a cdrom, a boot environment, and cards or disks that wait for the next start.',
    options: [
      option('-n, --node <node>', 'where to; without it, where there is room', {
        complete: 'node',
      }),
      wholeNumber('--timeout <seconds>', 'it stays where it is if it takes longer (default 3600)', {
        group: 'Job:',
        minimum: 10,
      }),
      option(
        '--cleanup',
        'it goes nowhere: what a migration that was cut short has left ends now, on all nodes that answer; the record says where the guest goes on',
        { group: 'Job:' },
      ),
      ...jobOptions(),
    ],
    examples: [
      'gnt-instance migrate -n node2.example.com web1',
      'gnt-instance migrate --cleanup web1',
    ],
  }).action(async (name: string, options: MigrateOptions) => {
    await (await import('./move.ts')).runMigrate(context, name, options);
  });
  addCommand(program, {
    usage: 'failover <name>',
    arguments: { name: 'name of the instance' },
    completeArguments: ['instance'],
    summary: 'start an instance of a node that is down on another one',
    description:
      'For instances with the disk template sharedfile alone, and while their node does not answer. A node renews a lease in the store; when it could not for two thirds of a minute, its machines with shared disks are paused, by processes that need no daemon. The job waits until a minute has passed without a renewal, by the clock of the node that takes the instance, and until nobody has the disks; then one commit gives it the instance, and fails if the other node has renewed its lease. The instance is started if it was to run: from its disks, as after a power cut, without the secrets that were in the memory of its node. A node that comes back ends the machine, which does not write any more.',
    options: [
      option('-n, --node <node>', 'where to; without it, where there is room', {
        complete: 'node',
      }),
      option('-f, --force', 'do not ask; off a terminal nothing is done without it', {
        group: 'Job:',
      }),
      ...jobOptions(),
    ],
    examples: ['gnt-instance failover -f -n node2.example.com web1'],
  }).action(async (name: string, options: ForceOptions & { readonly node?: string }) => {
    await (await import('./move.ts')).runFailover(context, name, options);
  });
}
