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

const NAME = { name: 'Name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;
const POWER = 'Start and stop:';
const CHANGE = 'Change:';

const load = {
  change: () => import('./change.ts'),
  host: () => import('./host.ts'),
};

/** Adds commands that change an existing instance. */
export function addLifecycle(program: Command, context: Context): void {
  const job = jobOptions();
  const seconds = (flags: string, what: string) =>
    wholeNumber(flags, `${what} (default 120)`, { group: 'Job:' });

  addCommand(program, {
    ...ONE,
    usage: 'startup <name>',
    aliases: ['start'],
    group: POWER,
    summary: 'Start an instance',
    options: [secretOption(), ...waitReadyOptions(), ...job],
    notes: [SECRETS],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runStartup(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'shutdown <name>',
    aliases: ['stop'],
    group: POWER,
    summary: 'Shut down an instance',
    description: 'Asks the guest by ACPI to shut down, and powers it off after the timeout.',
    options: [
      seconds('--timeout <seconds>', 'Time for the guest to shut down; 0 powers off at once'),
      ...job,
    ],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runShutdown(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'reboot <name>',
    group: POWER,
    summary: 'Reboot an instance',
    options: [
      option(
        '-t, --type <type>',
        'Kind of reboot: ask the guest, reset, or stop and start (default soft)',
        { group: 'Job:', choices: ['soft', 'hard', 'full'] },
      ),
      seconds('--shutdown-timeout <seconds>', 'Time for the guest to shut down'),
      ...waitReadyOptions(),
      ...job,
    ],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runReboot(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'remove <name>',
    group: CHANGE,
    summary: 'Shut down an instance and remove it with its disks',
    options: [
      option('-f, --force', 'Do not ask; required without a terminal', { group: 'Job:' }),
      seconds('--shutdown-timeout <seconds>', 'Time for the guest to shut down'),
      ...job,
    ],
    examples: ['gnt-instance remove -f web1'],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runRemove(context, name, options);
  });
  addCommand(program, {
    group: CHANGE,
    usage: 'adopt <name>',
    arguments: { name: 'Name or UUID of an orphan (status ERROR_orphan)' },
    summary: 'Create the record of an orphan again',
    description:
      'An orphan is a running instance without a record, for example after an old backup of the store was restored. adopt writes the record that the node kept, and claims name, addresses and MAC addresses. It is refused if another instance has them. gnt-instance remove ends an orphan and removes its disks.',
    options: job,
    examples: ['gnt-instance list -F \'status == "ERROR_orphan"\'', 'gnt-instance adopt web1'],
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load.change()).runAdopt(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'rename <name> <newname>',
    group: CHANGE,
    arguments: { ...NAME, newname: 'New name' },
    summary: 'Rename a stopped instance',
    options: [installTimeoutOption('Abort the rename script after this time'), ...job],
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
    ['add-tags', 'addTags', 'Add tags to an instance'],
    ['remove-tags', 'removeTags', 'Remove tags from an instance'],
  ] as const) {
    addCommand(program, {
      ...ONE,
      usage: `${usage} <name> <tags...>`,
      group: CHANGE,
      arguments: { ...NAME, tags: 'Tags, such as rs_agent:type=right_link_lite' },
      summary,
      options: job,
    }).action(async (name: string, tags: readonly string[], options: SubmitOptions) => {
      await (await load.change()).runTags(context, name, TAGS[key](tags), options);
    });
  }
  addCommand(program, {
    ...ONE,
    usage: 'run <name> <script>',
    group: 'Reach the guest:',
    arguments: { ...NAME, script: 'Script of the operational list, with or without its number' },
    summary: 'Run a script of the operational list in the guest',
    description:
      'Prints the output of the script, and fails if the script fails. Scripts of an instance run one at a time, in order. A shutdown ends the running script and skips all waiting scripts. Cancelling the job ends the script. gnt-instance audit shows the output of all scripts.',
    options: [
      option('--input <name=value>', 'Set a variable of this run, or NAME=@FILE; repeatable', {
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
    group: CHANGE,
    arguments: { ...NAME, newname: 'Name of the copy' },
    summary: 'Copy a stopped instance with its disks',
    description:
      'The copy gets its own UUID, instance id, MAC addresses and channel address. Everything else that is stored is the same, including tags, private parameters and static addresses of NICs. Secrets are not copied. Disks share their blocks where the file system can (btrfs, XFS). The copy is not started.',
    options: job,
    examples: ['gnt-instance shutdown web1 && gnt-instance copy web1 web2'],
  }).action(async (name: string, newName: string, options: SubmitOptions) => {
    await (await load.change()).runCopyInstance(context, name, newName, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'grow-disk <name> <disk> <amount>',
    group: CHANGE,
    arguments: {
      ...NAME,
      disk: 'Number of the disk, from 0',
      amount: 'Size to add, such as 10G',
    },
    summary: 'Grow a disk, also of a running instance',
    description:
      'The guest of a running instance sees the new size at once. The guest grows its file system itself; cloud-init does so at each boot. Disks cannot shrink.',
    options: [option('--absolute', 'The amount is the new size', { group: 'Job:' }), ...job],
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
    usage: 'activate-disks <name>',
    group: 'Show:',
    summary: 'Show the paths of the disks on the node',
    description:
      'Prints NODE:disk/N:PATH for each disk, as Ganeti does. Disks are always active. Do not write to the disks of a running instance.',
    options: [jsonOption()],
  }).action(async (name: string, options: { json?: boolean }) => {
    await (await load.host()).runActivateDisks(context, name, options);
  });
  addCommand(program, {
    ...ONE,
    usage: 'replace-token <name>',
    group: CHANGE,
    summary: 'Invalidate all session tokens of an instance',
    description:
      'The guest must request a new token. With --metadata-token=optional, requests without a token still work.',
  }).action(async (name: string) => {
    await (await load.host()).runReplaceToken(context, name);
  });
}

/** Changes of tags in the opcode's form. */
const TAGS = {
  addTags: (tags: readonly string[]) => ({ addTags: tags }),
  removeTags: (tags: readonly string[]) => ({ removeTags: tags }),
} as const;
