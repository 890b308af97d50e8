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
import { osParameterOptions } from '../instance/options.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { OsModifyOptions } from './os.ts';

const load = () => import('./os.ts');

export function createOsProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-os',
    'Show and change OS definitions. A new OS definition is untrusted.',
  );
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'OS definitions; * and ? are wildcards (default: all)' },
    completeArguments: ['os'],
    summary: 'List OS definitions and their variants',
    options: [
      option('-a, --all', 'Show also hidden, blacklisted and invalid OS definitions', {
        group: 'Output:',
      }),
      ...listOptions(),
    ],
    examples: ['gnt-os list --no-headers', 'gnt-os list -o name,trusted,path'],
  }).action(async (names: readonly string[], options: ListOptions & { all?: boolean }) => {
    await (await load()).runOsList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runOsListFields(context, options);
  });
  addCommand(program, {
    usage: 'diagnose',
    summary: 'Check the OS definitions of all nodes',
    description:
      'Checks the OS definitions of all nodes. Exit status 1 if an OS definition is invalid or missing on a node, or if a node does not respond.',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    await (await load()).runOsDiagnose(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    aliases: ['show'],
    arguments: { names: 'OS definitions (default: all)' },
    completeArguments: ['os'],
    summary: 'Show OS definitions with their parameters and scripts',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runOsInfo(context, names, options);
  });
  addCommand(program, {
    usage: 'modify <name>',
    arguments: { name: 'OS or OS+VARIANT; it may not exist yet' },
    completeArguments: ['os'],
    summary: 'Trust, hide or blacklist an OS definition, or set its defaults',
    options: [
      yesNo(
        '--trusted <yes|no>',
        'Allow its top-level scripts to run on the node, as they are now',
        {
          group: 'Operating system:',
        },
      ),
      option(
        '--safe-install <optional|required>',
        'Run its top-level scripts in the appliance, never on the node (default optional)',
        { group: 'Operating system:', choices: ['optional', 'required'] },
      ),
      option(
        '--appliance <name>',
        'Install with this imported appliance (default: the appliance of the cluster)',
        { group: 'Operating system:' },
      ),
      yesNo('--hidden <yes|no>', 'Hide it in lists', { group: 'Operating system:' }),
      yesNo('--blacklisted <yes|no>', 'Refuse it for new instances', {
        group: 'Operating system:',
      }),
      ...osParameterOptions(false),
      ...jobOptions(),
    ],
    explanation: [
      '--safe-install required: the scripts create, verify, import, export and rename run in the appliance, trusted or not, in their usual environment. They reach the network only through package mirrors (gnt-cluster modify --package-mirror).',
    ],
    notes: ['none as the value of --appliance unsets it; -key in -O unsets a parameter.'],
    examples: [
      'gnt-os modify --trusted yes debootstrap',
      'gnt-os modify -O proxy=http://cache:3142,-mirror debian+bookworm',
      'gnt-os modify --hidden yes debian+trixie',
    ],
  }).action(async (name: string, options: OsModifyOptions) => {
    await (await load()).runOsModify(context, name, options);
  });
  addCommand(program, {
    usage: 'trust <name>',
    arguments: { name: 'OS or OS+VARIANT' },
    completeArguments: ['os'],
    summary: 'Trust an OS definition as it is now',
    description:
      'Same as modify --trusted yes. Trust belongs to the content: every name, mode and byte in the directory of the definition, on all nodes with the same content. A changed definition is untrusted again.',
    options: [...jobOptions()],
    examples: ['gnt-os trust debootstrap'],
  }).action(async (name: string, options: OsModifyOptions) => {
    await (await load()).runOsModify(context, name, { ...options, trusted: true });
  });
  return program;
}
