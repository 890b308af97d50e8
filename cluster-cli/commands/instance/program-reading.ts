import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { addCommand, jsonOption, option } from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';

const GROUP = 'Show:';
const NAME = { name: 'Name of the instance' } as const;
const ONE = { group: GROUP, arguments: NAME, completeArguments: ['instance'] } as const;

const load = {
  read: () => import('./read.ts'),
  channel: () => import('./instance-channel.ts'),
};

/** Adds commands that change nothing. */
export function addReading(program: Command, context: Context): void {
  addCommand(program, {
    ...ONE,
    usage: 'list [names...]',
    arguments: { names: 'Instances; * and ? are wildcards (default: all)' },
    summary: 'List instances',
    options: listOptions(),
    notes: ['Fields: gnt-instance list-fields.'],
    examples: [
      'gnt-instance list',
      'gnt-instance list -o name,status --no-headers --separator=: "web*"',
      'gnt-instance list -o +ready,channel.ip --filter \'status == "running" and be/memory >= 512\'',
    ],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load.read()).runList(context, names, options);
  });
  addCommand(program, {
    group: GROUP,
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load.read()).runListFields(context, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'info [names...]',
    aliases: ['show'],
    arguments: { names: 'Instances' },
    summary: 'Show the state and the parameters of instances',
    description:
      'Shows the state first, then what needs attention and the next step. Private OS parameters are shown as <redacted>, secret ones by name only.',
    options: [
      option('--all', 'Show everything, of all instances if no name is given', {
        group: 'Output:',
      }),
      jsonOption(),
    ],
  }).action(async (names: readonly string[], options: { all?: boolean; json?: boolean }) => {
    await (await load.read()).runInfo(context, names, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'hooks <name>',
    summary: 'Show the hooks of the next installation',
    description:
      'Shows the hooks of appliance, cluster, OS definition and instance by stage, in the order in which they run: each step with its document and the names of its fields, never their values. add and reinstall show the same with --dry-run.',
    options: [jsonOption()],
  }).action(async (name: string, options: { json?: boolean }) => {
    await (await load.read()).runHooks(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'log <name>',
    summary: 'Show the log of the last installation',
    options: [followOption(), jsonOption()],
  }).action(async (name: string, options: { follow?: boolean; json?: boolean }) => {
    await (await load.channel()).runLog(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'list-tags <name>',
    summary: 'List the tags of an instance, one per line',
    options: [jsonOption()],
  }).action(async (name: string, options: { json?: boolean }) => {
    await (await load.read()).runListTags(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'audit <name>',
    summary: 'Show the log of the run lists',
    description:
      'Shows each script of the run lists with its end, in the words of RightLink: RightScript, Completed, Aborted, Stranded. Output of scripts is indented. Values of private and secret parameters are hidden. The guest needs curl or wget. With systemd, sysvinit or OpenRC, decommission scripts also run at a reboot or shutdown that is typed in the guest; in other guests only when the node asks for it.',
    options: [followOption(), jsonOption()],
  }).action(async (name: string, options: { follow?: boolean; json?: boolean }) => {
    await (await load.channel()).runAudit(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'metadata <name> [path]',
    arguments: {
      ...NAME,
      path: 'Path of the metadata service; with ?partial=true lost secrets are null',
    },
    summary: 'Show the metadata of the guest, with secrets redacted',
    options: [jsonOption()],
    examples: [
      'gnt-instance metadata web1',
      'gnt-instance metadata web1 /openstack/latest/meta_data.json',
    ],
  }).action(async (name: string, path: string | undefined, options: { json?: boolean }) => {
    await (await load.channel()).runMetadata(context, name, path, options);
  });
}

function followOption() {
  return option('-f, --follow', 'Continue with new lines', { group: 'Output:' });
}
