import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { createProgram, addCommand, wholeNumber } from '../../completion/command.ts';

const load = () => import('./channel.ts');

/**
 * The program for scripts of trusted OS definitions on the host: the node daemon puts a command of
 * this name on their PATH that knows the instance.
 */
export function createChannelProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-channel',
    'Lets a script on the host talk with the one in the appliance, or with the guest.',
  );
  const shared = {
    arguments: { name: 'name of the instance; left out on the PATH of a script' },
    completeArguments: ['instance'],
  } as const;
  addCommand(program, {
    ...shared,
    usage: 'read <name>',
    summary: 'wait for bytes that the other side wrote, print them and end',
    description:
      'What the other side posted to /ganeti/latest/write. What is printed is gone from the queue.',
    options: [
      wholeNumber('--wait <seconds>', 'longest wait (default: as long as the channel is open)', {
        group: 'Channel:',
      }),
    ],
  }).action(async (name: string, options: { wait?: number }) => {
    await (await load()).runChannelRead(context, name, options);
  });
  addCommand(program, {
    ...shared,
    usage: 'write <name>',
    summary: 'pass stdin on for the other side to read',
    description: 'The other side gets it from /ganeti/latest/read.',
  }).action(async (name: string) => {
    await (await load()).runChannelWrite(context, name);
  });
  return program;
}
