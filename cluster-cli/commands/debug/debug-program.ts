import type { Command } from 'commander';
import { addCommand, createProgram, jobOptions } from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import type { SubmitOptions } from '../submit.ts';

export function createDebugProgram(context: Context): Command {
  const program = createProgram(context, 'gnt-debug', 'Test the job queue of a cluster.');
  addCommand(program, {
    usage: 'delay <seconds>',
    arguments: { seconds: 'Duration, with a fraction if needed' },
    summary: 'Run a job that waits and changes nothing',
    description:
      'Runs a job that waits and changes nothing. Use it to monitor that the cluster accepts and finishes jobs. gnt-job cancel ends it early.',
    options: jobOptions(),
    examples: ['gnt-debug delay 0.1'],
  }).action(async (seconds: string, options: SubmitOptions) => {
    await (await import('./delay.ts')).runDelay(context, seconds, options);
  });
  return program;
}
