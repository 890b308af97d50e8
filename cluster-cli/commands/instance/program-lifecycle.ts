import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  addCommand,
  jobOptions,
  jsonOption,
  option,
  wholeNumber,
} from '../../completion/command.ts';
import type { SubmitOptions } from '../submit.ts';
import { installTimeoutOption, secretOption, SECRETS, waitReadyOptions } from './options.ts';

const NAME = { name: 'name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;

const load = {
  change: () => import('./change.ts'),
  host: () => import('./host.ts'),
};

/** What becomes of an instance that is there. */
export function addLifecycle(program: Command, context: Context): void {
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

/** Changes of tags as the request has them. */
const TAGS = {
  addTags: (tags: readonly string[]) => ({ addTags: tags }),
  removeTags: (tags: readonly string[]) => ({ removeTags: tags }),
} as const;
