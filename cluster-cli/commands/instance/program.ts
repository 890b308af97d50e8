import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  createProgram,
  addCommand,
  jobOptions,
  jsonOption,
  option,
  wholeNumber,
} from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { SubmitOptions } from '../submit.ts';
import { addChannel } from './program-channel.ts';
import { addInstallation, SECRETS } from './program-install.ts';
import { addMove } from './program-move.ts';
import { addSnapshots } from './program-snapshots.ts';
import { installTimeoutOption, secretOption, waitReadyOptions } from './options.ts';

const NAME = { name: 'name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;

const load = {
  change: () => import('./change.ts'),
  read: () => import('./read.ts'),
  channel: () => import('./channel.ts'),
  host: () => import('./host.ts'),
};

/** The command tree of gnt-instance. What a command does is loaded when it runs. */
export function createInstanceProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-instance',
    'Adds, installs, shows and controls instances: virtual machines with a channel to their host.',
  );
  addInstallation(program, context);
  addLifecycle(program, context);
  addMove(program, context);
  addSnapshots(program, context);
  addReading(program, context);
  addChannel(program, context);
  return program;
}

function addLifecycle(program: Command, context: Context): void {
  const job = jobOptions();
  const seconds = (flags: string, what: string) =>
    wholeNumber(flags, `${what} (default 120)`, { group: 'Job:' });

  addCommand(program, {
    ...ONE,
    usage: 'remove <name>',
    summary: 'shut an instance down and remove it with its disks',
    options: [
      option('-f, --force', 'do not ask; off a terminal nothing is removed without it', {
        group: 'Job:',
      }),
      seconds('--shutdown-timeout <seconds>', 'time for the guest to shut down'),
      ...job,
    ],
    examples: ['gnt-instance remove -f web1'],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runRemove(context, name, options);
  });
  addCommand(program, {
    usage: 'adopt <name>',
    arguments: { name: 'name or UUID of a machine that list shows as ERROR_orphan' },
    summary: 'make a machine that runs without a record an instance again',
    description:
      'A store that was moved away, restored from an older backup or that lost something does not know machines that run. They run on, untouched. The record that the node kept beside the machine is put back; its name, addresses and MACs are claimed anew, and refused where another instance has them by now. `gnt-instance remove` ends such a machine instead, with its disks.',
    options: job,
    examples: ['gnt-instance list -F \'status == "ERROR_orphan"\'', 'gnt-instance adopt web1'],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runAdopt(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'rename <name> <newname>',
    arguments: { ...NAME, newname: 'its new name' },
    summary: 'give a stopped instance another name',
    options: [installTimeoutOption("for the OS definition's rename script"), ...job],
  }).action(
    async (
      name: string,
      newName: string,
      options: SubmitOptions & { readonly installTimeout?: number },
    ) => {
      await (await load.change()).runRename(context, name, newName, options);
    },
  );
  for (const [usage, key, summary] of [
    ['add-tags', 'addTags', 'add tags to an instance'],
    ['remove-tags', 'removeTags', 'remove tags from an instance'],
  ] as const) {
    addCommand(program, {
      ...ONE,
      usage: `${usage} <name> <tags...>`,
      arguments: { ...NAME, tags: 'such as rs_agent:type=right_link_lite' },
      summary,
      options: job,
    }).action(async (name: string, tags: readonly string[], options: SubmitOptions) => {
      await (await load.change()).runTags(context, name, TAGS[key](tags), options);
    });
  }
  addCommand(program, {
    ...ONE,
    usage: 'run <name> <script>',
    arguments: { ...NAME, script: 'of its operational list, with or without its number' },
    summary: 'run a script of the operational list in the guest',
    description:
      'Waits for its end, and fails when it did. One script of an instance at a time, in the order in which they were asked for; a shutdown ends what runs and passes what waits. What it prints is in `gnt-instance audit`. Cancelling the job ends the script.',
    options: [
      option('--input <name=value>', 'variable of this run, or NAME=@FILE; never stored', {
        group: 'Job:',
        isRepeatable: true,
      }),
      ...job,
    ],
    examples: ['gnt-instance run web1 backup.sh', 'gnt-instance run web1 deploy --input TAG=v7'],
  }).action(
    async (
      name: string,
      script: string,
      options: SubmitOptions & { readonly input?: readonly string[] },
    ) => {
      await (await load.change()).runScript(context, name, script, options);
    },
  );
  addCommand(program, {
    ...ONE,
    usage: 'copy <name> <newname>',
    arguments: { ...NAME, newname: 'name of the copy' },
    summary: 'make another instance like a stopped one, with its disks',
    description:
      'The copy has a UUID, an instance id, MACs and a channel address of its own; all else that is stored is the same, tags, private parameters and addresses of cards included. Secrets are not copied. The disks share their blocks where the file system can (btrfs, xfs), and stay sparse where it cannot. The copy is not started.',
    options: job,
    examples: ['gnt-instance shutdown web1 && gnt-instance copy web1 web2'],
  }).action(async (name: string, newName: string, options: SubmitOptions) => {
    await (await load.change()).runCopyInstance(context, name, newName, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'grow-disk <name> <disk> <amount>',
    arguments: {
      ...NAME,
      disk: 'its number, 0 is the first',
      amount: 'what is added, such as 10G',
    },
    summary: 'make a disk larger, of a running instance too',
    description:
      'The guest of a running instance sees the new size at once; what is on the disk grows when the guest does that, as cloud-init does at each boot. Disks do not shrink.',
    options: [option('--absolute', 'the amount is the new size', { group: 'Job:' }), ...job],
    examples: ['gnt-instance grow-disk web1 0 10G', 'gnt-instance grow-disk --absolute web1 0 40G'],
  }).action(
    async (
      name: string,
      disk: string,
      amount: string,
      options: SubmitOptions & { readonly absolute?: boolean },
    ) => {
      await (await load.change()).runGrowDisk(context, name, { disk, amount }, options);
    },
  );
  addCommand(program, {
    ...ONE,
    usage: 'startup <name>',
    aliases: ['start'],
    summary: 'start an instance',
    options: [secretOption(), ...waitReadyOptions(), ...job],
    notes: [SECRETS],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runStartup(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'shutdown <name>',
    aliases: ['stop'],
    summary: 'shut an instance down',
    description: 'Asks the guest by ACPI, and powers it off when it does not obey in time.',
    options: [seconds('--timeout <seconds>', 'time for the guest to obey, 0 powers off'), ...job],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runShutdown(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'reboot <name>',
    summary: 'reboot an instance',
    options: [
      option(
        '-t, --type <type>',
        'soft: the guest is asked (default); hard: reset; full: stop and start',
        {
          group: 'Job:',
          choices: ['soft', 'hard', 'full'],
        },
      ),
      seconds('--shutdown-timeout <seconds>', 'time for the guest to shut down'),
      ...waitReadyOptions(),
      ...job,
    ],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runReboot(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'activate-disks <name>',
    summary: "show where an instance's disks are on the host",
    description:
      'Prints NODE:disk/N:PATH for each disk, as Ganeti does. Disks are raw files and are always active; those of an instance that runs must not be written to.',
    options: [jsonOption()],
  }).action(async (name: string, options: { json?: boolean }) => {
    await (await load.host()).runActivateDisks(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'replace-token <name>',
    summary: 'end all session tokens of an instance',
    description:
      'The guest must ask for a new one. With --metadata-token=optional requests without a token go on working.',
  }).action(async (name: string) => {
    await (await load.host()).runReplaceToken(context, name);
  });
}

function addReading(program: Command, context: Context): void {
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

/** As the request has them. */
const TAGS = {
  addTags: (tags: readonly string[]) => ({ addTags: tags }),
  removeTags: (tags: readonly string[]) => ({ removeTags: tags }),
} as const;
