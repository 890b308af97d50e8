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
  const program = createProgram(
    context,
    'gnt-node',
    'Shows and changes nodes, and checks this one.',
  );
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'nodes; * and ? match several' },
    completeArguments: ['node'],
    summary: 'list nodes',
    options: listOptions(),
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runNodeList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runNodeListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    arguments: { names: 'nodes; this one without a name' },
    completeArguments: ['node'],
    summary: 'show nodes',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runNodeInfo(context, names, options);
  });
  addCommand(program, {
    usage: 'add [token]',
    arguments: { token: 'what gnt-cluster join-token printed; @FILE, - for stdin' },
    summary: 'make this node one of a cluster, as gnt-cluster join',
    description: JOIN_DESCRIPTION,
    options: [],
  }).action(async (token: string | undefined) => {
    await (await import('../cluster/join.ts')).runJoin(context, token);
  });
  addCommand(program, {
    usage: 'modify <name>',
    arguments: { name: 'node' },
    completeArguments: ['node'],
    summary: 'say that a node is drained or offline, or that it is not any more',
    description:
      'A drained node gets no new instances; those that it has go on and obey. One that is offline is down for longer: besides, no node asks it for anything, its jobs are refused and its instances are ERROR_nodeoffline. A node is one of the two at most: setting one takes the other one back.',
    options: [
      yesNo('-D, --drained <yes|no>', 'it gets no new instances'),
      yesNo('-O, --offline <yes|no>', 'nobody asks it for anything; run it on another node'),
      ...jobOptions(),
    ],
    examples: ['gnt-node modify --drained yes node2.example.com'],
  }).action(async (name: string, options: NodeModifyOptions) => {
    await (await load()).runNodeModify(context, name, options);
  });
  addCommand(program, {
    usage: 'evacuate <name>',
    arguments: { name: 'node that its instances leave' },
    completeArguments: ['node'],
    summary: 'send all instances of a node to other nodes',
    description:
      'Each goes where there is room, one after the other: those that run as gnt-instance migrate does it, those that are stopped as gnt-instance move does. One that cannot go is told, and does not keep the others. Mark the node as drained first, or it gets new ones meanwhile.',
    options: [
      option('-f, --force', 'do not ask; off a terminal nothing is moved without it', {
        group: 'Job:',
      }),
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
    arguments: { name: 'node that its running instances leave' },
    completeArguments: ['node'],
    summary: 'migrate the running instances of a node to other nodes',
    description:
      'Each goes where there is room, one after the other, as gnt-instance migrate does it. One that cannot go is told, and does not keep the others. Those that are stopped stay: evacuate sends them too.',
    options: [
      option('-f, --force', 'do not ask; off a terminal nothing is moved without it', {
        group: 'Job:',
      }),
      ...jobOptions(),
    ],
    examples: ['gnt-node migrate -f node2.example.com'],
  }).action(async (name: string, options: ForceOptions) => {
    await (await import('./evacuate.ts')).runNodeMigrate(context, name, options);
  });
  addCommand(program, {
    usage: 'failover <name>',
    arguments: { name: 'node that is down' },
    completeArguments: ['node'],
    summary: 'start the instances of a node that is down on other nodes, if their disks are shared',
    description:
      'Each goes where there is room, one after the other, as gnt-instance failover does it. One that cannot go is told, and does not keep the others.',
    options: [
      option('-f, --force', 'do not ask; off a terminal nothing is done without it', {
        group: 'Job:',
      }),
      ...jobOptions(),
    ],
    examples: ['gnt-node failover -f node2.example.com'],
  }).action(async (name: string, options: ForceOptions) => {
    await (await import('./evacuate.ts')).runNodeFailover(context, name, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    arguments: { name: 'node that is gone for good' },
    completeArguments: ['node'],
    summary: 'take a node out of the cluster',
    description:
      'Run on another node. Refused while the node answers, or has instances. Its copy of the key of the cluster still opens the store: wipe its disks.',
    options: [
      option('--forget-instances', 'those that it had are gone with it: remove their records too'),
    ],
  }).action(async (name: string, options: { forgetInstances?: boolean }) => {
    await (await load()).runNodeRemove(context, name, options);
  });
  addCommand(program, {
    usage: 'doctor',
    summary: 'check whether installations can work on this node, and say what to do',
    description:
      'Exit status 0 when they can, warnings included; 1 when they cannot; 3 when the node daemon cannot be reached.',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    await (await import('./doctor.ts')).runDoctor(context, options);
  });
  return program;
}
