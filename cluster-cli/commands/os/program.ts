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
    'Shows OS definitions, and what the administrator decided about them. A new one is untrusted.',
  );
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'OS definitions; * and ? match several' },
    completeArguments: ['os'],
    summary: 'list what can be installed',
    options: [
      option('-a, --all', 'hidden, blacklisted and invalid ones too', { group: 'Output:' }),
      ...listOptions(),
    ],
    examples: ['gnt-os list --no-headers', 'gnt-os list -o name,trusted,path'],
  }).action(async (names: readonly string[], options: ListOptions & { all?: boolean }) => {
    await (await load()).runOsList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runOsListFields(context, options);
  });
  addCommand(program, {
    usage: 'diagnose',
    summary: 'show the OS definitions of all nodes, and what is wrong with them',
    description:
      'Exit status 1 when one of them is not valid or not on every node, or a node does not answer.',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    await (await load()).runOsDiagnose(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    arguments: { names: 'OS definitions; all without a name' },
    completeArguments: ['os'],
    summary: 'show OS definitions with their parameters, scripts and defaults',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runOsInfo(context, names, options);
  });
  addCommand(program, {
    usage: 'modify <name>',
    arguments: { name: 'OS or OS+VARIANT; it need not exist yet' },
    completeArguments: ['os'],
    summary:
      'trust, hide or blacklist an OS definition, or set its appliance or default parameters',
    options: [
      yesNo('--trusted <yes|no>', 'may its top-level scripts run on the host, as they are now', {
        group: 'Operating system:',
      }),
      option(
        '--safe-install <optional|required>',
        'required: no script of it runs on the host. Those at its top (create, verify, import, export, rename) run in the appliance, trusted or not, in their usual environment; there they reach the network by package mirrors only (gnt-cluster modify --package-mirror)',
        { group: 'Operating system:', choices: ['optional', 'required'] },
      ),
      option(
        '--appliance <name>',
        'install with this imported appliance (gnt-appliance list), or "built", whatever the cluster says; "none" takes it back',
        { group: 'Operating system:' },
      ),
      yesNo('--hidden <yes|no>', 'leave it out of lists', { group: 'Operating system:' }),
      yesNo('--blacklisted <yes|no>', 'refuse it for new instances', {
        group: 'Operating system:',
      }),
      ...osParameterOptions(false),
      ...jobOptions(),
    ],
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
    summary: 'trust an OS definition as it is now, as modify --trusted yes does',
    description:
      'Trust belongs to the content: every name, mode and byte in the folder of the definition, on every node that has the same. ' +
      'A definition that is changed is untrusted until it is trusted again.',
    options: [...jobOptions()],
    examples: ['gnt-os trust debootstrap'],
  }).action(async (name: string, options: OsModifyOptions) => {
    await (await load()).runOsModify(context, name, { ...options, trusted: true });
  });
  return program;
}
