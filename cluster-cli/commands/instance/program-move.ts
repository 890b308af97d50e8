import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { addCommand, jobOptions, option } from '../../completion/command.ts';
import type { SubmitOptions } from '../submit.ts';

/** move: what Ganeti has beside it, there is not (usage.ts). */
export function addMove(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'move <name>',
    arguments: { name: 'name of the instance' },
    completeArguments: ['instance'],
    summary: 'move a stopped instance to another node, with its disks',
    description:
      'Everything that the cluster knows of it stays: UUID, instance id, addresses, run lists, parameters. The disks go over the sealed link between the nodes, without their holes; the other node reads them again before it gets the instance, and only then they are removed here. It is refused where the other node has no room, is drained, or lacks the OS definition, the image or another file that the instance names, and while the instance has snapshots. A link that is cut for less than five minutes is waited for. Logs of installations and scripts, and the audit log of its lifecycle, stay on the node that it leaves. There are neither migrate nor failover: what runs is shut down first, and an instance of a node that is down waits for that node.',
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
}
