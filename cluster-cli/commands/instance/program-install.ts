import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  addCommand,
  jobOptions,
  option,
  wholeNumber,
  type OptionMaker,
} from '../../completion/command.ts';
import type { AddOptions } from './add.ts';
import type { SubmitOptions } from '../submit.ts';
import type { LaunchOptions } from './launch.ts';
import type { ModifyOptions } from './modify.ts';
import type { ReinstallOptions } from './reinstall.ts';
import {
  diskOptions,
  installationOptions,
  KEY_HELP,
  LIST_SYNTAX,
  machineOptions,
  uncheckedOptions,
  metadataOptions,
  partOptions,
  SECRETS,
  storedTimeoutOption,
  waitReadyOptions,
} from './options.ts';

const NAME = { name: 'Name of the instance' } as const;
const NEW_NAME = { name: 'Name of the instance: a host name in lower case' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;
const GROUP = 'Create and install:';
const UNSET = 'none as the value of an option unsets what is stored.';

const load = {
  add: () => import('./add.ts'),
  batch: () => import('./batch-create.ts'),
  launch: () => import('./launch.ts'),
  modify: () => import('./modify.ts'),
  reinstall: () => import('./reinstall.ts'),
};

/** Adds launch, add, reinstall and modify. */
export function addInstallation(program: Command, context: Context): void {
  addLaunch(program, context);
  addAdd(program, context);
  addBatchCreate(program, context);
  addReinstall(program, context);
  addModify(program, context);
}

function addLaunch(program: Command, context: Context): void {
  addCommand(program, {
    group: GROUP,
    usage: 'launch <image> <name>',
    summary: 'Create an instance to log in to, in one line',
    description:
      'Creates an instance from an image, with the channel, one NIC and your public SSH keys, starts it and waits until cloud-init in the guest has finished.',
    explanation: [
      'Public keys come from ~/.ssh/*.pub and the SSH agent, unless --ssh-key or --user-data is given.',
      'Values come from the options, else from ~/.config/gnt/config.yaml (launch: {size, memory, vcpus, net, ssh_keys}), else from the cluster: gnt-cluster modify --default-size, --default-memory, --default-vcpus and --default-net. gnt-cluster info shows the values of the cluster.',
      'A disk that is smaller than the image requires is refused.',
    ],
    arguments: {
      image: 'Name (gnt-image list), URL, or path that begins with / or .',
      ...NEW_NAME,
    },
    completeArguments: ['image'],
    options: [
      ...installationOptions().filter(({ long }) => long !== '--os-image'),
      ...metadataOptions('yes'),
      ...diskOptions('0:mode=user'),
      ...machineOptions(),
      noStartOption(),
      onFailureOption(),
      option('--no-wait', 'Do not wait until cloud-init has finished', { group: 'Job:' }),
      ...waitReadyOptions(),
      ...jobOptions(),
    ],
    essentials: [
      ...['--os-size', '--disk', '--net', '--no-nics', '--backend-parameters', '--node', '--tags'],
      ...['--ssh-key', '--user-data', '--no-wait', '--submit', '--dry-run', '--json'],
    ],
    notes: [KEY_HELP, LIST_SYNTAX, SECRETS],
    examples: [
      'gnt-instance launch debian/12 web1',
      'gnt-instance launch -s 20G -B memory=2G,vcpus=2 --net 0:link=br0 ubuntu/24.04 db1',
    ],
  }).action(async (image: string, name: string, options: LaunchOptions) => {
    await (await load.launch()).runLaunch(context, image, name, options);
  });
}

function addBatchCreate(program: Command, context: Context): void {
  addCommand(program, {
    group: GROUP,
    usage: 'batch-create <file>',
    summary: 'Create the instances of a JSON file',
    description:
      'Creates the instances of a JSON file in the format of Ganeti, one job for each. If an entry is wrong or its creation would be refused, no instance is created.',
    arguments: { file: 'JSON list of creations, or - (stdin)' },
    completeArguments: ['file'],
    options: jobOptions(),
    explanation: [
      'An entry has the keys of a creation by the remote API, see gnt-rapi(7); mode is optional. Sizes are in MiB or have a unit: 1024, "1024", "1g".',
      'Each entry is checked against the present state of the cluster, without the other entries: together they may need more room than the cluster has. Exit status 1 if a job fails; the others continue.',
    ],
    notes: [
      '[{"instance_name": "web1.example.com", "disk_template": "file", "os_type": "debootstrap+default", "disks": [{"size": "10g"}], "nics": [{}], "beparams": {"maxmem": 1024, "vcpus": 2}}]',
    ],
    examples: ['gnt-instance batch-create instances.json'],
  }).action(async (file: string, options: SubmitOptions) => {
    await (await load.batch()).runBatchCreate(context, file, options);
  });
}

function addAdd(program: Command, context: Context): void {
  addCommand(program, {
    group: GROUP,
    usage: 'add <name>',
    summary: 'Create an instance, install and start it',
    description:
      'Creates the disks, installs an image, then the scripts of an OS definition, then a personalization package in the appliance, and starts the instance. Give at least one of --os-type, --os-image, --bootenv and --install-parameters.',
    arguments: NEW_NAME,
    options: [
      ...installationOptions(),
      ...metadataOptions('no'),
      ...diskOptions(),
      ...machineOptions(),
      option('--no-install', 'Create the disks only; start nothing', { group: 'Job:' }),
      noStartOption(),
      onFailureOption(),
      ...waitReadyOptions(),
      ...uncheckedOptions(),
      ...jobOptions(),
    ],
    essentials: [
      ...['--os-type', '--os-image', '--os-parameters', '--os-parameters-secret', '--os-size'],
      ...['--disk', '--net', '--backend-parameters', '--node', '--tags', '--communication'],
      ...['--ssh-key', '--user-data', '--no-start', '--wait-ready', '--submit', '--dry-run'],
      '--json',
    ],
    notes: [KEY_HELP, LIST_SYNTAX, SECRETS],
    examples: [
      'gnt-instance add --os-image debian/12 -s 10G -C yes web1.example.com',
      'gnt-instance add -o debootstrap+default --disk 0:size=20G,name=root -B memory=2G,vcpus=2 db1',
      'gnt-instance add -o app --os-image /img/base.raw.zst -s 4G -O color=blue --os-parameters-secret password=@/root/db.pass --user-data init.yaml --wait-ready=300 app1',
    ],
  }).action(async (name: string, options: AddOptions) => {
    await (await load.add()).runAdd(context, name, options);
  });
}

function addReinstall(program: Command, context: Context): void {
  addCommand(program, {
    ...ONE,
    group: GROUP,
    usage: 'reinstall <name>',
    summary: 'Install an instance again',
    description:
      'Installs a stopped instance on new disks, with its stored parameters and those given. The old disks stay until the installation has succeeded, where there is room for both.',
    explanation: [
      'Given parameters are merged with the stored ones, and stored when the installation has succeeded. Secrets are never stored: the command names those that it needs again.',
      'Image, checksum, package and login are checked before the instance is changed. If the installation fails, the instance has its old disks, and runs again if it ran.',
      UNSET,
    ],
    options: [
      ...installationOptions(),
      option('--keep-old', 'Refuse if there is no room for new disks beside the old ones', {
        group: 'Job:',
      }),
      option('--no-keep-old', 'Overwrite the old disks; a failure leaves nothing to start', {
        group: 'Job:',
      }),
      wholeNumber(
        '--shutdown-timeout <seconds>',
        'Stop a running instance, with this time for the guest to shut down',
        { group: 'Job:' },
      ),
      noStartOption(),
      option('-f, --force', 'Do not ask', { group: 'Job:' }),
      ...waitReadyOptions(),
      ...jobOptions(),
    ],
    essentials: [
      ...['--os-type', '--os-image', '--os-parameters', '--os-parameters-secret', '--keep-old'],
      ...['--no-keep-old', '--shutdown-timeout', '--no-start', '--force', '--wait-ready'],
      ...['--submit', '--dry-run', '--json'],
    ],
    notes: [UNSET, LIST_SYNTAX, SECRETS],
    examples: [
      'gnt-instance reinstall --os-parameters-secret password=@/root/db.pass web1',
      'gnt-instance reinstall --os-image debian/12 --shutdown-timeout 120 -f web1',
    ],
  }).action(async (name: string, options: ReinstallOptions) => {
    await (await load.reinstall()).runReinstall(context, name, options);
  });
}

const MODIFY_WITHOUT = [
  '--personalization-user',
  '--personalization-password',
  '--enable-safe-install',
  '--install-timeout',
];

function addModify(program: Command, context: Context): void {
  addCommand(program, {
    ...ONE,
    group: GROUP,
    usage: 'modify <name>',
    summary: 'Change the parameters of an instance',
    description:
      'Changes the stored settings. Metadata changes at once; memory, processors, the channel and most hypervisor parameters change at the next start; images, packages and hooks count for the next installation.',
    explanation: [
      UNSET,
      'Secrets given here are held in memory until the daemons restart. They are never stored.',
      'A running instance gets new disks and NICs at once where possible. Other changes to them take effect at its next start. info shows the present value and the value after the next start. N is the number, the name or the UUID of a disk or NIC.',
    ],
    options: [
      ...installationOptions().filter(
        ({ long }) => !MODIFY_WITHOUT.some((prefix) => long?.startsWith(prefix)),
      ),
      storedTimeoutOption(),
      ...metadataOptions(),
      ...machineOptions(),
      ...partOptions(),
      option(
        '--accept-host-keys',
        'Trust the SSH host keys that the guest reports now; show them and ask',
        { group: 'Guest:' },
      ),
      option('--accept-fingerprint <SHA256:…>', 'Trust this host key without asking; repeatable', {
        group: 'Guest:',
        isRepeatable: true,
      }),
      option('-f, --force', 'Do not ask; required without a terminal', { group: 'Job:' }),
      ...jobOptions(),
    ],
    essentials: [
      ...['--os-parameters', '--communication', '--user-data', '--ssh-key', '--metadata'],
      ...['--backend-parameters', '--hypervisor-parameters', '--autostart', '--tags', '--net'],
      ...['--disk', '--accept-host-keys', '--force', '--submit', '--dry-run', '--json'],
    ],
    notes: [UNSET, KEY_HELP, LIST_SYNTAX],
    examples: [
      'gnt-instance modify -B memory=4G web1',
      'gnt-instance modify -O color=red,-size web1',
      'gnt-instance modify --communication=yes --metadata role=db web1',
      'gnt-instance modify --net add:link=br1 --net 0:ip=10.0.0.5/24,gateway=10.0.0.1 --add-disk 20G web1',
      'gnt-instance modify --user-data none web1',
    ],
  }).action(async (name: string, options: ModifyOptions) => {
    await (await load.modify()).runModify(context, name, options);
  });
}

function noStartOption(): OptionMaker {
  return option('--no-start', 'Do not start the instance after the installation', {
    group: 'Job:',
  });
}

function onFailureOption(): OptionMaker {
  return option(
    '--on-failure <what>',
    'Keep or remove an instance whose installation failed (default keep)',
    { group: 'Job:', choices: ['keep', 'remove'] },
  );
}
