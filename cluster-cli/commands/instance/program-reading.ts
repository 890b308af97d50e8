import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import { addCommand, jsonOption, option } from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';

const NAME = { name: 'name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;

const load = {
  read: () => import('./read.ts'),
  channel: () => import('./channel.ts'),
};

/** What changes nothing. */
export function addReading(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'instances; * and ? match several' },
    completeArguments: ['instance'],
    summary: 'list instances',
    options: listOptions(),
    notes: ['Fields: see gnt-instance list-fields.'],
    examples: [
      'gnt-instance list',
      'gnt-instance list -o name,status --no-headers --separator=: "web*"',
      'gnt-instance list -o +ready,channel.ip --filter \'status == "running" and be/memory >= 512\'',
    ],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load.read()).runList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load.read()).runListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    arguments: { names: 'instances' },
    completeArguments: ['instance'],
    summary: 'show all that is known of instances',
    description:
      'Private OS parameters are shown as <redacted>, secret ones by name. Tells the last installation with its stages, and what failed.',
    options: [option('--all', 'all instances', { group: 'Output:' }), jsonOption()],
  }).action(async (names: readonly string[], options: { all?: boolean; json?: boolean }) => {
    await (await load.read()).runInfo(context, names, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'hooks <name>',
    summary: 'show the hooks of its next installation in the order in which they are run',
    description:
      'The documents of appliance, cluster, OS definition and instance, as they are now, by stage: each step with its document and the names of its fields, never with what they hold. A document that the appliance would refuse is refused here, as `add`, `modify` and `reinstall` refuse it. `--dry-run` of `add` and `reinstall` shows the same of what is not there yet.',
    options: [jsonOption()],
  }).action(async (name: string, options: { json?: boolean }) => {
    await (await load.read()).runHooks(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'log <name>',
    summary: 'show the log of the last installation',
    options: [option('-f, --follow', 'go on as it grows', { group: 'Output:' }), jsonOption()],
  }).action(async (name: string, options: { follow?: boolean; json?: boolean }) => {
    await (await load.channel()).runLog(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'list-tags <name>',
    summary: 'show the tags of an instance, one a line',
    options: [jsonOption()],
  }).action(async (name: string, options: { json?: boolean }) => {
    await (await load.read()).runListTags(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'audit <name>',
    summary: 'show what its run lists did and printed',
    description:
      'Each script of the guest with its end, as RightLink tells it: RightScript, Completed, Aborted, Stranded. What scripts print is indented; values of private and secret parameters are hidden.',
    options: [option('-f, --follow', 'go on as it grows', { group: 'Output:' }), jsonOption()],
  }).action(async (name: string, options: { follow?: boolean; json?: boolean }) => {
    await (await load.channel()).runAudit(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'metadata <name> [path]',
    arguments: {
      ...NAME,
      path: 'path as the guest asks for it, such as /ganeti/latest/meta_data.json; with ?partial=true lost secrets are null',
    },
    summary: 'show what the guest would get, secrets redacted',
    options: [jsonOption()],
    examples: [
      'gnt-instance metadata web1',
      'gnt-instance metadata web1 /openstack/latest/meta_data.json',
    ],
  }).action(async (name: string, path: string | undefined, options: { json?: boolean }) => {
    await (await load.channel()).runMetadata(context, name, path, options);
  });
}
