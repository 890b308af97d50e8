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
import type { LaunchOptions } from './launch.ts';
import type { ModifyOptions } from './modify.ts';
import type { ReinstallOptions } from './reinstall.ts';
import {
  diskOptions,
  installationOptions,
  LIST_SYNTAX,
  machineOptions,
  metadataOptions,
  partOptions,
  SECRETS,
  storedTimeoutOption,
  waitReadyOptions,
} from './options.ts';

const NAME = { name: 'name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;

const load = {
  add: () => import('./add.ts'),
  launch: () => import('./launch.ts'),
  modify: () => import('./modify.ts'),
  reinstall: () => import('./reinstall.ts'),
};

/** add, reinstall and modify. */
export function addInstallation(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'add <name>',
    summary: 'add an instance, install and start it',
    description:
      'Makes the disks, installs an image, the scripts of an OS definition and a personalization package in the appliance, in this order, and starts the instance. At least one of --os-type, --os-image and an installation medium (--install-parameters) is needed.',
    arguments: { name: 'name of the instance: a host name in lower case' },
    options: [
      ...installationOptions(),
      ...metadataOptions(),
      ...diskOptions(),
      ...machineOptions(),
      option('--no-install', 'make the disks only; nothing is started', { group: 'Job:' }),
      option('--no-start', 'do not start it after the installation', { group: 'Job:' }),
      onFailureOption(),
      ...waitReadyOptions(),
      ...jobOptions(),
    ],
    notes: [LIST_SYNTAX, SECRETS],
    examples: [
      'gnt-instance add --os-image https://example.com/debian-12.qcow2 -s 10G -C yes web1.example.com',
      'gnt-instance add -o debootstrap+default --disk 0:size=20G,name=root -B memory=2G,vcpus=2 db1',
      'gnt-instance add -o app --os-image /img/base.raw.zst -s 4G -O color=blue \\\n      --os-parameters-secret password=@/root/db.pass --user-data init.yaml --wait-ready=300 app1',
    ],
  }).action(async (name: string, options: AddOptions) => {
    await (await load.add()).runAdd(context, name, options);
  });

  addCommand(program, {
    usage: 'launch <image> <name>',
    summary: 'add an instance to log in to, in one line',
    description:
      'As add, with what a person wants who is going to log in: the channel, one network card, a disk of 10 GiB or as much as the image needs, your public keys (~/.ssh/*.pub and the agent), and it waits until cloud-init in the guest is done. An option counts before ~/.config/gnt/config.yaml (launch: {size, memory, vcpus, net, ssh_keys}), that before gnt-cluster modify --default-size, --default-memory, --default-vcpus and --default-net; gnt-cluster info shows these. A first disk that is smaller than the image of that name needs is refused.',
    arguments: {
      image: 'its name (gnt-image list), a URL, or a path that begins with / or .',
      name: 'name of the instance: a host name in lower case',
    },
    completeArguments: ['image'],
    options: [
      ...installationOptions().filter(({ long }) => long !== '--os-image'),
      ...metadataOptions(),
      ...diskOptions(),
      ...machineOptions(),
      option('--no-start', 'do not start it after the installation', { group: 'Job:' }),
      onFailureOption(),
      option('--no-wait', 'do not wait until cloud-init is done', { group: 'Job:' }),
      ...waitReadyOptions(),
      ...jobOptions(),
    ],
    notes: [LIST_SYNTAX, SECRETS],
    examples: [
      'gnt-instance launch debian/12 web1',
      'gnt-instance launch -B memory=2G --net 0:link=br0 ubuntu/24.04 db1',
    ],
  }).action(async (image: string, name: string, options: LaunchOptions) => {
    await (await load.launch()).runLaunch(context, image, name, options);
  });

  addCommand(program, {
    ...ONE,
    usage: 'reinstall <name>',
    summary: 'install an instance again, with its stored parameters and those given',
    description:
      'Installs a stopped instance on new disks. Stored parameters stay, given ones are merged, and they are stored when the installation has succeeded; the word "none" as the OS, the image or the package takes it back. Image, checksum, package and login are tried before the instance is touched. The old disks stay until the installation has succeeded, where there is room: if it fails, the instance is what it was, and runs again if it ran. Secrets are never stored: those of the last installation are named when they are missing.',
    options: [
      ...installationOptions(),
      option(
        '--keep-old',
        'refuse if there is no room for new disks beside the old ones (default: keep them where there is room)',
        { group: 'Job:' },
      ),
      option(
        '--no-keep-old',
        'overwrite the old disks, after an appliance without them has looked at image, package and hooks: a failure from then on leaves nothing to start',
        { group: 'Job:' },
      ),
      wholeNumber(
        '--shutdown-timeout <seconds>',
        'stop a running instance when everything is at hand, with this time for the guest to obey; without it, a running one is refused',
        { group: 'Job:' },
      ),
      option('--no-start', 'do not start it after the installation', { group: 'Job:' }),
      option('-f, --force', 'do not ask', { group: 'Job:' }),
      ...waitReadyOptions(),
      ...jobOptions(),
    ],
    notes: [LIST_SYNTAX, SECRETS],
    examples: ['gnt-instance reinstall --os-parameters-secret password=@/root/db.pass web1'],
  }).action(async (name: string, options: ReinstallOptions) => {
    await (await load.reinstall()).runReinstall(context, name, options);
  });

  const MODIFY_WITHOUT = [
    '--personalization-user',
    '--personalization-password',
    '--enable-safe-install',
    '--install-timeout',
  ];
  addCommand(program, {
    ...ONE,
    usage: 'modify <name>',
    summary: 'change the parameters of an instance',
    description:
      'Changes what is stored. What the machine is made of takes effect at its next start, metadata at once. Secrets given here are held in memory until a restart of the daemons. Hooks take the place of the instance\'s own at its next reinstallation. The word "default" as the value of a document, package or hook removes it, "none" that of the OS, the image and the package: what is installed next.',
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
        'trust the SSH host keys that the guest says now, in place of those of its installation; shows them and asks',
        { group: 'Guest:' },
      ),
      option(
        '--accept-fingerprint <SHA256:…>',
        'trust that one of them, and do not ask; repeatable',
        { group: 'Guest:', isRepeatable: true },
      ),
      option(
        '-f, --force',
        'do not ask; off a terminal no key is trusted, and no disk removed, without it',
        {
          group: 'Job:',
        },
      ),
      ...jobOptions(),
    ],
    notes: [LIST_SYNTAX],
    examples: [
      'gnt-instance modify -O color=red,-size web1',
      'gnt-instance modify --communication=yes --metadata role=db web1',
      'gnt-instance modify -B memory=4G web1',
      'gnt-instance modify --net add:link=br1 --net 0:ip=10.0.0.5/24,gateway=10.0.0.1 --add-disk 20G web1',
      'gnt-instance modify --hooks 10-users.yaml --hooks 20-disks.yaml web1',
    ],
  }).action(async (name: string, options: ModifyOptions) => {
    await (await load.modify()).runModify(context, name, options);
  });
}

function onFailureOption(): OptionMaker {
  return option(
    '--on-failure <what>',
    'keep: when the installation fails the instance stays, for reinstall (default); remove: nothing of it does',
    { group: 'Job:', choices: ['keep', 'remove'] },
  );
}
