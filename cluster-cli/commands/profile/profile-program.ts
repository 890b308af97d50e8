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
    'Manage profiles: OS parameters that instances share. Assign them with gnt-instance modify --profiles. The profile global applies to every instance.',
  );
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'Profiles; * and ? are wildcards (default: all)' },
    completeArguments: ['profile'],
    summary: 'List profiles',
    options: listOptions(),
    examples: ['gnt-profile list -o name,instances'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runProfileList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runProfileListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    arguments: { names: 'Profiles (default: all)' },
    completeArguments: ['profile'],
    summary: 'Show profiles with their parameters and instances',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runProfileInfo(context, names, options);
  });
  addCommand(program, {
    usage: 'modify <name>',
    arguments: { name: 'Profile; created if it does not exist' },
    completeArguments: ['profile'],
    summary: 'Set parameters of a profile',
    description:
      'Sets public and private OS parameters. Profiles cannot contain secrets. A running instance gets the change at its next start or modify.',
    explanation: [
      'Parameters of an instance override those of its profiles; an earlier profile overrides a later one; profiles override the defaults of the OS definition. The profile global comes last.',
    ],
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
    arguments: { name: 'Profile' },
    completeArguments: ['profile'],
    summary: 'Remove a profile that no instance uses',
    options: jobOptions(),
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load()).runProfileRemove(context, name, options);
  });
  return program;
}
