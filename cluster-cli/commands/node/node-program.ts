import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  createProgram,
  addCommand,
  jobOptions,
  jsonOption,
  option,
  yesNo,
} from '../../completion/command.ts';
import { JOIN_DESCRIPTION } from '../cluster/join-description.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import type { NodeModifyOptions } from './node.ts';
import { listOptions, type ListOptions } from '../list.ts';

const load = () => import('./node.ts');

export function createNodeProgram(context: Context): Command {
  const program = createProgram(context, 'gnt-node', 'Show and change nodes, and check this one.');
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'Nodes; * and ? are wildcards (default: all)' },
    completeArguments: ['node'],
    summary: 'List nodes',
    options: listOptions(),
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runNodeList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runNodeListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    aliases: ['show'],
    arguments: { names: 'Nodes (default: this node)' },
    completeArguments: ['node'],
    summary: 'Show nodes',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runNodeInfo(context, names, options);
  });
  addCommand(program, {
    usage: 'add [token]',
    arguments: { token: 'Token of gnt-cluster join-token, or @FILE, or - (stdin)' },
    summary: 'Join this node to a cluster; same as gnt-cluster join',
    description: JOIN_DESCRIPTION,
    options: [],
  }).action(async (token: string | undefined) => {
    await (await import('../cluster/join.ts')).runJoin(context, token);
  });
  addCommand(program, {
    usage: 'modify <name>',
    arguments: { name: 'Node' },
    completeArguments: ['node'],
    summary: 'Mark a node as drained or offline',
    description:
      'A drained node gets no new instances; its instances keep running. Mark a node as offline while it is down: other nodes do not contact it, its jobs are refused and its instances are ERROR_nodeoffline. Setting one flag clears the other.',
    options: [
      yesNo('-D, --drained <yes|no>', 'Give the node no new instances', { group: 'Node:' }),
      yesNo('-O, --offline <yes|no>', 'Do not contact the node; run this on another node', {
        group: 'Node:',
      }),
      ...jobOptions(),
    ],
    examples: ['gnt-node modify --drained yes node2.example.com'],
  }).action(async (name: string, options: NodeModifyOptions) => {
    await (await load()).runNodeModify(context, name, options);
  });
  addCommand(program, {
    usage: 'evacuate <name>',
    arguments: { name: 'Node to evacuate' },
    completeArguments: ['node'],
    summary: 'Move all instances of a node to other nodes',
    description:
      'Migrates running instances and moves stopped ones, one after another, to nodes with room. An instance that cannot be moved is reported, and the others continue. Mark the node as drained first, so that it gets no new instances.',
    options: [
      option('-f, --force', 'Do not ask; required without a terminal', { group: 'Job:' }),
      ...jobOptions(),
    ],
    examples: [
      'gnt-node modify --drained yes node2.example.com && gnt-node evacuate -f node2.example.com',
    ],
  }).action(async (name: string, options: ForceOptions) => {
    await (await import('./evacuate.ts')).runEvacuate(context, name, options);
  });
  addCommand(program, {
    usage: 'migrate <name>',
    arguments: { name: 'Node whose running instances are migrated' },
    completeArguments: ['node'],
    summary: 'Migrate the running instances of a node to other nodes',
    description:
      'Migrates running instances one after another to nodes with room. An instance that cannot be migrated is reported, and the others continue. Stopped instances stay: evacuate moves them too.',
    options: [
      option('-f, --force', 'Do not ask; required without a terminal', { group: 'Job:' }),
      ...jobOptions(),
    ],
    examples: ['gnt-node migrate -f node2.example.com'],
  }).action(async (name: string, options: ForceOptions) => {
    await (await import('./evacuate.ts')).runNodeMigrate(context, name, options);
  });
  addCommand(program, {
    usage: 'failover <name>',
    arguments: { name: 'Failed node' },
    completeArguments: ['node'],
    summary: 'Start instances of a failed node with shared disks on other nodes',
    description:
      'Starts instances one after another on nodes with room, as gnt-instance failover does. An instance that cannot be started is reported, and the others continue.',
    options: [
      option('-f, --force', 'Do not ask; required without a terminal', { group: 'Job:' }),
      ...jobOptions(),
    ],
    examples: ['gnt-node failover -f node2.example.com'],
  }).action(async (name: string, options: ForceOptions) => {
    await (await import('./evacuate.ts')).runNodeFailover(context, name, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    arguments: { name: 'Node that will not come back' },
    completeArguments: ['node'],
    summary: 'Remove a node from the cluster',
    description:
      'Run this on another node. Refused while the node responds or has instances. Its copy of the cluster key still opens the store: wipe its disks, or run gnt-cluster renew-crypto.',
    options: [
      option('--forget-instances', 'Remove the records of its instances too', { group: 'Node:' }),
    ],
  }).action(async (name: string, options: { forgetInstances?: boolean }) => {
    await (await load()).runNodeRemove(context, name, options);
  });
  addCommand(program, {
    usage: 'doctor',
    summary: 'Check whether this node can install and run instances',
    description:
      'Checks whether this node can install and run instances. Exit status: 0 no errors, 1 an error was found, 3 the node daemon cannot be reached.',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    await (await import('./doctor.ts')).runDoctor(context, options);
  });
  return program;
}
