import { IMAGE_FORMATS } from '#shared/contract/image-formats.ts';
import {
  autostartKeys,
  backendKeys,
  diskKeys,
  hypervisorKeys,
  installKeys,
  nicKeys,
  optionOf,
  type PlainPlace,
  plainSettings,
} from '#shared/contract/parameter-keys.ts';
import { option, wholeNumber, yesNo, type OptionMaker } from '../../completion/command.ts';

export const LIST_SYNTAX =
  "Lists: key=value,key2=value2. '\\,' is a comma; no_key is False; a bare key is True; -key or key=default unsets a key. A value can be @FILE or @- (stdin), without the last newline; '\\@' is an @ at the start. A whole list can be @FILE, one key=value per line.";
export const SECRETS =
  'Secrets: write name=@FILE or name=@- (stdin), or answer the prompt on a terminal. Other users can see secrets on the command line.';
export const KEY_HELP =
  'Keys and their defaults: give the word help as the value, such as --net help, --disk help, -B help or -H help.';

const OS_GROUP = 'Operating system:';
const PACKAGE_GROUP = 'Personalization package:';
const INSTALL_GROUP = 'Installation:';

export function installationOptions(): readonly OptionMaker[] {
  return [
    option('-o, --os-type <os>', 'Run the scripts of this OS definition: OS or OS+VARIANT', {
      group: OS_GROUP,
      complete: 'os',
    }),
    option('--force-variant', 'Accept a variant that the OS definition does not list; not stored', {
      group: OS_GROUP,
    }),
    option('--os-image <source>', 'Write this image to the first disk: a name, a path or a URL', {
      group: OS_GROUP,
      complete: 'file',
    }),
    option('--os-image-checksum <algo:hex>', 'Verify the image: sha256:HEX or sha512:HEX', {
      group: OS_GROUP,
    }),
    option('--image-format <format>', 'Format of the image (default auto: by content)', {
      group: OS_GROUP,
      choices: ['auto', ...IMAGE_FORMATS],
    }),
    yesNo(
      '--os-image-grow <yes|no>',
      'Grow the last partition and its file system to the disk (default no)',
      { group: OS_GROUP },
    ),
    ...osParameterOptions(),
    option('--profiles <list>', 'Use OS parameters of these profiles, the first above the others', {
      group: OS_GROUP,
      complete: 'profile',
    }),
    option('--personalization-package <url>', 'Unpack this .tar.gz or .tgz over the disk, last', {
      group: PACKAGE_GROUP,
      complete: 'file',
    }),
    option(
      '--personalization-checksum <algo:hex>',
      'Verify the package: sha256:HEX or sha512:HEX',
      { group: PACKAGE_GROUP },
    ),
    option('--personalization-user <user>', 'User for the download; not stored', {
      group: PACKAGE_GROUP,
    }),
    option(
      '--personalization-password <value>',
      'Password for the download: @FILE or @- (stdin); not stored',
      { group: PACKAGE_GROUP, complete: 'file' },
    ),
    option('--hooks <file>', 'Run the hooks of this YAML document; repeatable', {
      group: INSTALL_GROUP,
      complete: 'file',
      isRepeatable: true,
    }),
    yesNo(
      '--enable-safe-install <yes|no>',
      'Run everything in the appliance (default yes); no is refused with untrusted scripts',
      { group: INSTALL_GROUP },
    ),
    option('--install-parameters <list>', 'Boot the installation from other media', {
      group: INSTALL_GROUP,
      isRepeatable: true,
      keys: { keys: installKeys, syntax: 'key=value,…' },
    }),
    ...plainOptions('installation', INSTALL_GROUP),
    option('--bootenv <name>', 'Boot this boot environment through the channel', {
      group: INSTALL_GROUP,
      complete: 'bootenv',
    }),
    option(
      '--appliance <name>',
      'Install with this imported appliance (default: that of the cluster)',
      {
        group: INSTALL_GROUP,
      },
    ),
    installTimeoutOption('Abort after this time; 0 is no limit'),
  ];
}

function plainOptions(place: PlainPlace, group: string): readonly OptionMaker[] {
  return Object.entries(plainSettings).flatMap(([key, row]) => {
    if (row.place !== place) return [];
    const flags = `${optionOf(key)} <${row.syntax}>`;
    if ('isSwitch' in row.type) return [yesNo(flags, row.help, { group })];
    const choices = 'words' in row.type ? { choices: row.type.words } : {};
    return [option(flags, row.help, { group, ...choices })];
  });
}

/** @param action the limited action */
export function installTimeoutOption(action: string): OptionMaker {
  return wholeNumber(
    '--install-timeout <seconds>',
    `${action} (default: that of the instance, else of the cluster)`,
    { group: INSTALL_GROUP },
  );
}

/** Returns the timeout option of modify, which can be unset. */
export function storedTimeoutOption(): OptionMaker {
  return option(
    '--install-timeout <seconds>',
    'Longest time of OS scripts; 0 is no limit, none is the limit of the cluster',
    { group: INSTALL_GROUP },
  );
}

export function osParameterOptions(withSecret = true): readonly OptionMaker[] {
  return [
    option('-O, --os-parameters <list>', 'Set public OS parameters; repeatable', {
      group: OS_GROUP,
      isRepeatable: true,
    }),
    option('--os-parameters-private <list>', 'Set OS parameters that are never shown; repeatable', {
      group: OS_GROUP,
      isRepeatable: true,
    }),
    ...(withSecret ? [secretOption()] : []),
  ];
}

export function secretOption(): OptionMaker {
  return option(
    '--os-parameters-secret <list>',
    'Set OS parameters that are never stored, as name=@FILE; repeatable',
    { group: OS_GROUP, isRepeatable: true },
  );
}

export function waitReadyOptions(): readonly OptionMaker[] {
  const group = 'Job:';
  return [
    wholeNumber(
      '--wait-ready <seconds>',
      'Wait until the guest has booted; status 1 if cloud-init failed (default 600: --wait-ready)',
      { group, minimum: 1 },
    ),
    option('--degraded-fails', 'With --wait-ready: also status 1 for a boot with warnings', {
      group,
    }),
  ];
}

/** @param communication default of `-C`; undefined for a change */
export function metadataOptions(communication?: 'yes' | 'no'): readonly OptionMaker[] {
  const group = 'Metadata:';
  const usual = communication === undefined ? '' : ` (default ${communication})`;
  return [
    yesNo('-C, --communication <yes|no>', `Give the guest the channel to its node${usual}`, {
      group,
    }),
    // Ganeti's code has -c where its design said -C; commander allows one letter for an option.
    yesNo('-c <yes|no>', 'Same as -C', { isHidden: true }),
    option('--user-data <file>', 'Set user data; several files become one multi-part document', {
      group,
      complete: 'file',
      isRepeatable: true,
    }),
    option('--vendor-data <file>', 'Set vendor data', { group, complete: 'file' }),
    option('--network-config <file>', 'Set the network configuration for NoCloud', {
      group,
      complete: 'file',
    }),
    option('--ssh-key <file>', 'Set public SSH keys, one per line; repeatable', {
      group,
      complete: 'file',
      isRepeatable: true,
    }),
    option('--metadata <list>', 'Set keys of your own in the metadata; repeatable', {
      group,
      isRepeatable: true,
    }),
    option(
      '--run-list <file>',
      'Set the run lists from a ServerTemplate in the format of right_st',
      {
        group,
        complete: 'file',
      },
    ),
    ...(['boot', 'operational', 'decommission'] as const).map((list) =>
      option(`--${list}-script <file>`, `Add a script to the ${list} list; repeatable`, {
        group,
        complete: 'file',
        isRepeatable: true,
      }),
    ),
    ...plainOptions('metadata', group),
  ];
}

/** Options of Ganeti's scripts for checks that do not exist here. */
export function uncheckedOptions(): readonly OptionMaker[] {
  return [
    option('--no-name-check', 'No effect, as names are never resolved', { group: 'Job:' }),
    option('--no-ip-check', 'No effect, as addresses are never probed', { group: 'Job:' }),
  ];
}

export function machineOptions(): readonly OptionMaker[] {
  const group = 'Instance:';
  return [
    option(
      '-B, --backend-parameters <list>',
      'Set memory=SIZE (default 512M) and vcpus=N (default 1); repeatable',
      { group, isRepeatable: true, keys: { keys: backendKeys, syntax: 'key=value,…' } },
    ),
    option('-H, --hypervisor-parameters <list>', 'Set hypervisor parameters; repeatable', {
      group,
      isRepeatable: true,
      keys: { keys: hypervisorKeys, syntax: '[kvm:]key=value,…' },
    }),
    option('--autostart <list>', 'Start it after a reboot of the node (default yes); repeatable', {
      group,
      isRepeatable: true,
      keys: { keys: autostartKeys, syntax: 'yes|no[,key=value,…]' },
    }),
    option('--tags <list>', 'Set tags, separated by commas', { group }),
  ];
}

/** @param net NICs of a new instance without --net */
export function diskOptions(net = 'none'): readonly OptionMaker[] {
  const disks = 'Disks:';
  const nics = 'Network:';
  return [
    option('-t, --disk-template <template>', 'Where disks are kept (default file)', {
      group: disks,
      choices: ['file', 'sharedfile', 'plain', 'zfs', 'diskless'],
    }),
    option('-s, --os-size <size>', 'Add one disk of this size, in MiB or as 20G (default 10G)', {
      group: disks,
    }),
    option('--disk <n:list>', 'Add disk N, as 0:size=20G,name=root; repeatable, N from 0', {
      group: disks,
      isRepeatable: true,
      keys: { keys: diskKeys, syntax: 'N:key=value,…' },
    }),
    option('--net <n:list>', `Add NIC N, as 0:link=br0; repeatable, N from 0 (default ${net})`, {
      group: nics,
      isRepeatable: true,
      keys: { keys: nicKeys, syntax: 'N:key=value,…' },
    }),
    option('--no-nics', 'Add no NIC but the channel', { group: nics }),
    option('-n, --node <node>', 'Create the instance on this node (default: the one with room)', {
      group: 'Instance:',
      complete: 'node',
    }),
  ];
}

/** Returns the options of modify for NICs and disks. */
export function partOptions(): readonly OptionMaker[] {
  const disks = 'Disks:';
  return [
    option('--net <change>', 'Change NICs: add:LIST, N:LIST or N:remove; repeatable', {
      group: 'Network:',
      isRepeatable: true,
      keys: { keys: nicKeys, syntax: 'add:key=value,… or N:key=value,… or N:remove' },
    }),
    option('--disk <change>', 'Change disks: add:size=SIZE, N:name=NAME or N:remove; repeatable', {
      group: disks,
      isRepeatable: true,
      keys: { keys: diskKeys, syntax: 'add:size=SIZE or N:name=NAME or N:remove' },
    }),
    option('--add-disk <size>', 'Same as --disk add:size=SIZE; repeatable', {
      group: disks,
      isRepeatable: true,
    }),
    option('--remove-disk <n>', 'Same as --disk N:remove', { group: disks }),
  ];
}
