import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { createProgram, addCommand, jsonOption, option } from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';

const load = () => import('./job.ts');

export function createJobProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-job',
    'Shows, watches and cancels jobs: every change is one.',
  );
  const completeArguments = ['job'] as const;
  addCommand(program, {
    usage: 'list [ids...]',
    arguments: { ids: 'jobs; all without an id' },
    completeArguments,
    summary: 'list jobs, and what waits for what',
    options: [
      option('--running', 'only those that are not over', { group: 'Output:' }),
      ...listOptions(),
    ],
  }).action(async (ids: readonly string[], options: ListOptions & { running?: boolean }) => {
    await (await load()).runJobList(context, ids, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runJobListFields(context, options);
  });
  addCommand(program, {
    usage: 'info <ids...>',
    arguments: { ids: 'jobs' },
    completeArguments,
    summary: 'show jobs with their log and result',
    options: [jsonOption()],
  }).action(async (ids: readonly string[], options: { json?: boolean }) => {
    await (await load()).runJobInfo(context, ids, options);
  });
  addCommand(program, {
    usage: 'watch <id>',
    arguments: { id: 'job' },
    completeArguments,
    summary: 'follow a job until its end',
    description:
      'Ends as the job ends: exit status 0 when it succeeded, 1 when it failed, 2 when it was refused. Ctrl-C leaves it to itself, a second one cancels it.',
    options: [option('--json', 'print the events, one JSON object a line', { group: 'Output:' })],
  }).action(async (id: string, options: { json?: boolean }) => {
    await (await load()).runJobWatch(context, id, options);
  });
  addCommand(program, {
    usage: 'cancel <ids...>',
    arguments: { ids: 'jobs' },
    completeArguments,
    summary: 'cancel jobs, at whatever stage they are',
  }).action(async (ids: readonly string[]) => {
    await (await load()).runJobCancel(context, ids);
  });
  return program;
}
