import type { Command } from 'commander';
import { addCommand, createProgram, jobOptions } from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import type { SubmitOptions } from '../submit.ts';

export function createDebugProgram(context: Context): Command {
  const program = createProgram(context, 'gnt-debug', 'Test the jobs of a cluster.');
  addCommand(program, {
    usage: 'delay <seconds>',
    arguments: { seconds: 'Duration, with a fraction if needed' },
    summary: 'Run a job that waits and changes nothing',
    description:
      'Runs a job that waits and changes nothing. A monitoring system can check with it that jobs are accepted and end. gnt-job cancel ends it early.',
    options: jobOptions(),
    examples: ['gnt-debug delay 0.1'],
  }).action(async (seconds: string, options: SubmitOptions) => {
    await (await import('./delay.ts')).runDelay(context, seconds, options);
  });
  return program;
}
