import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { createProgram, addCommand, jobOptions, jsonOption } from '../../completion/command.ts';
import { osParameterOptions } from '../instance/options.ts';
import { listOptions, type ListOptions } from '../list.ts';
import { LIST_SYNTAX } from '../instance/options.ts';
import type { SubmitOptions } from '../submit.ts';
import type { ProfileModifyOptions } from './profile.ts';

const load = () => import('./profile.ts');

export function createProfileProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-profile',
    'OS parameters that instances share: an instance has those of its profiles (gnt-instance modify --profiles), the first above the others, below its own and above those of its OS. "global" is everyone\'s, below all.',
  );
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'profiles; * and ? match several' },
    completeArguments: ['profile'],
    summary: 'list profiles',
    options: listOptions(),
    examples: ['gnt-profile list -o name,instances'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runProfileList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runProfileListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    arguments: { names: 'profiles; all without a name' },
    completeArguments: ['profile'],
    summary: 'show profiles with their parameters and instances',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runProfileInfo(context, names, options);
  });
  addCommand(program, {
    usage: 'modify <name>',
    arguments: { name: 'profile; made where there is none' },
    completeArguments: ['profile'],
    summary: 'set parameters of a profile',
    description:
      'Sets parameters, public or private, which are stored. Secrets are in no profile: they are given to an instance, and never stored. Instances that run see changes with their next start or modify.',
    options: [...osParameterOptions(false), ...jobOptions()],
    notes: [LIST_SYNTAX],
    examples: [
      'gnt-profile modify -O proxy=http://cache:3142,-mirror web',
      'gnt-profile modify --os-parameters-private license=@/root/license global',
    ],
  }).action(async (name: string, options: ProfileModifyOptions) => {
    await (await load()).runProfileModify(context, name, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    arguments: { name: 'profile' },
    completeArguments: ['profile'],
    summary: 'forget a profile that no instance names',
    options: jobOptions(),
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load()).runProfileRemove(context, name, options);
  });
  return program;
}
