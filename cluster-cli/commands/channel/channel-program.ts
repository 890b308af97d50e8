import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { createProgram, addCommand, wholeNumber } from '../../completion/command.ts';

const load = () => import('./channel.ts');

/**
 * Creates the program for scripts of trusted OS definitions on the host. The node daemon puts a
 * wrapper of this name, which knows the instance, on their PATH.
 */
export function createChannelProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-channel',
    'Exchange bytes between an OS script on the node and the appliance or the guest.',
  );
  const shared = {
    arguments: { name: 'Name of the instance; omit it inside an OS script' },
    completeArguments: ['instance'],
  } as const;
  addCommand(program, {
    ...shared,
    usage: 'read <name>',
    summary: 'Wait for bytes from the other side, print them and end',
    description:
      'Reads what the other side posted to /ganeti/latest/write, and removes it from the queue.',
    options: [
      wholeNumber(
        '--wait <seconds>',
        'Give up after this time (default: when the channel closes)',
        {
          group: 'Channel:',
        },
      ),
    ],
  }).action(async (name: string, options: { wait?: number }) => {
    await (await load()).runChannelRead(context, name, options);
  });
  addCommand(program, {
    ...shared,
    usage: 'write <name>',
    summary: 'Send stdin to the other side',
    description: 'The other side reads it from /ganeti/latest/read.',
  }).action(async (name: string) => {
    await (await load()).runChannelWrite(context, name);
  });
  return program;
}
