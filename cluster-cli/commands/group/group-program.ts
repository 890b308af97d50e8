import type { Command } from 'commander';
import { addCommand, createProgram, jsonOption } from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import { listOptions, type ListOptions } from '../list.ts';

const load = () => import('./group.ts');

export function createGroupProgram(context: Context): Command {
  const program = createProgram(context, 'gnt-group', 'Show the node group of the cluster.');
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'Groups (default: all)' },
    summary: 'List node groups',
    description: 'Lists node groups. A cluster has one group, default, with all nodes.',
    options: listOptions(),
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runGroupList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runGroupListFields(context, options);
  });
  return program;
}
