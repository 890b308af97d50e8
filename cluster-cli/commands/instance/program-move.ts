import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { addCommand, jobOptions, option, wholeNumber } from '../../completion/command.ts';
import type { FailoverOptions, MigrateOptions, MoveOptions } from './move.ts';

const GROUP = 'Move between nodes:';
const ONE = {
  group: GROUP,
  arguments: { name: 'Name of the instance' },
  completeArguments: ['instance'],
} as const;

/** Adds move, migrate and failover. */
export function addMove(program: Command, context: Context): void {
  const target = option('-n, --node <node>', 'Target node (default: a node with room)', {
    complete: 'node',
    group: 'Target:',
  });
  // Ganeti's spellings.
  const targetNode = option('--target-node <node>', 'Same as --node', {
    complete: 'node',
    isHidden: true,
  });
  const force = option('-f, --force', 'No effect, as the command does not ask', {
    isHidden: true,
  });
  const dataRate = option(
    '--data-rate <size>',
    "Bytes per second at most, as 50M, or none (default: the cluster's)",
    { group: 'Job:' },
  );

  addCommand(program, {
    ...ONE,
    usage: 'move <name>',
    summary: 'Move a stopped instance to another node, with its disks',
    description:
      'Copies the disks over the encrypted link between the nodes and verifies them. The source node removes its disks when the target node has the instance.',
    explanation: [
      'The instance keeps its UUID, instance id, addresses, run lists and parameters. Logs of installations and scripts, and the audit log, stay on the source node.',
      'The move is refused if the target node has no room, is drained, or lacks the OS definition, the image or another file that the instance names, and while the instance has snapshots.',
      'The move waits up to five minutes for a broken link. Use migrate for a running instance, and failover for an instance with shared disks whose node is down.',
    ],
    options: [target, force, dataRate, ...jobOptions()],
    examples: [
      'gnt-instance shutdown web1 && gnt-instance move -n node2.example.com web1 && gnt-instance startup web1',
    ],
  }).action(async (name: string, options: MoveOptions) => {
    await (await import('./move.ts')).runMove(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'migrate <name>',
    summary: 'Move a running instance to another node without a shutdown',
    description:
      'Copies disks and memory over the encrypted link between the nodes while the guest runs, and stops the guest for the last part. The job can be cancelled until that step; a failure leaves the instance running on the source node.',
    explanation: [
      'The instance keeps its addresses, its instance id and its secrets, which go from memory to memory. Open connections of the channel and of user-mode NICs break.',
      'A guest that writes faster than the link transfers is slowed down, and can stand still for up to ten seconds; the job reports this. Without KVM, the guest stands still for the whole transfer of its memory.',
      'The migration is refused, before anything changes, for another version of QEMU, another accelerator or processor, no room, a drained node, snapshots, UEFI firmware, a CD-ROM, a boot environment, and NICs or disks that wait for the next start.',
    ],
    options: [
      ...[target, targetNode, force],
      wholeNumber('--timeout <seconds>', 'Give up after this time (default 3600)', {
        group: 'Job:',
        minimum: 10,
      }),
      dataRate,
      option('--cleanup', 'Clean up after an interrupted migration; migrate nothing', {
        group: 'Job:',
      }),
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
    ...ONE,
    usage: 'failover <name>',
    summary: 'Start an instance of a failed node on another node',
    description:
      'Takes over an instance with the disk template sharedfile while its node does not respond. The guest starts from its disks, as after a power failure, without the secrets that were in memory.',
    explanation: [
      'A node renews a lease in the store. When it cannot, it pauses its instances with shared disks. The job waits until the lease has expired and no node uses the disks; then one commit moves the instance. The commit fails if the old node has renewed its lease.',
      'The instance is started if it was configured to run. A node that comes back ends its paused QEMU process.',
    ],
    options: [
      ...[target, targetNode],
      option('-f, --force', 'Do not ask; required without a terminal', { group: 'Job:' }),
      ...jobOptions(),
    ],
    examples: ['gnt-instance failover -f -n node2.example.com web1'],
  }).action(async (name: string, options: FailoverOptions) => {
    await (await import('./move.ts')).runFailover(context, name, options);
  });
}
