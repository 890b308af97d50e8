import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { createProgram, addCommand, jsonOption, option } from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';

const load = () => import('./job.ts');

export function createJobProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-job',
    'Show, watch and cancel jobs. Every change is a job.',
  );
  const completeArguments = ['job'] as const;
  addCommand(program, {
    usage: 'list [ids...]',
    arguments: { ids: 'Job ids (default: all)' },
    completeArguments,
    summary: 'List jobs, and which job waits for which',
    options: [
      option('--running', 'Show only jobs that have not ended', { group: 'Output:' }),
      ...listOptions(),
    ],
  }).action(async (ids: readonly string[], options: ListOptions & { running?: boolean }) => {
    await (await load()).runJobList(context, ids, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runJobListFields(context, options);
  });
  addCommand(program, {
    usage: 'info <ids...>',
    aliases: ['show'],
    arguments: { ids: 'Job ids' },
    completeArguments,
    summary: 'Show jobs with their log and result',
    options: [jsonOption()],
  }).action(async (ids: readonly string[], options: { json?: boolean }) => {
    await (await load()).runJobInfo(context, ids, options);
  });
  addCommand(program, {
    usage: 'watch <id>',
    aliases: ['wait'],
    arguments: { id: 'Job id' },
    completeArguments,
    summary: 'Follow a job until it ends',
    description:
      'Prints the log of a job until it ends. Exit status: 0 the job succeeded, 1 it failed, 2 it was refused. Ctrl-C ends the command and leaves the job running; a second Ctrl-C cancels the job.',
    options: [option('--json', 'Print events, one JSON object per line', { group: 'Output:' })],
  }).action(async (id: string, options: { json?: boolean }) => {
    await (await load()).runJobWatch(context, id, options);
  });
  addCommand(program, {
    usage: 'cancel <ids...>',
    arguments: { ids: 'Job ids' },
    completeArguments,
    summary: 'Cancel jobs',
  }).action(async (ids: readonly string[]) => {
    await (await load()).runJobCancel(context, ids);
  });
  return program;
}
