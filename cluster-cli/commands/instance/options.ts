import { IMAGE_FORMATS, MEDIUM_SUCCESS } from '#shared/contract/image-formats.ts';
import { option, wholeNumber, yesNo, type OptionMaker } from '../../completion/command.ts';

export const LIST_SYNTAX = `Lists: key=value,key2=value2; '\\,' is a comma; no_key is False; a bare key is True; -key forgets;
the value "default" resets. Any value may be @FILE or @- (stdin), without the file's last newline;
'\\@' begins a value with @. A whole list may be @FILE too, one key=value a line.`;
export const SECRETS = `Secrets: name=@FILE, name=@-, or be asked on a terminal. A secret in the command line works, with a
warning: other users can see it. It is wiped from this process's title, not from npx's or a shell's.`;

const OS_GROUP = 'Operating system:';
const LIST = 'repeatable; k=v,k2=v2';

/** What an installation is made of: the same words for add and reinstall. */
export function installationOptions(): readonly OptionMaker[] {
  return [
    option('-o, --os-type <os>', 'OS definition whose scripts run, as OS or OS+VARIANT', {
      group: OS_GROUP,
      complete: 'os',
    }),
    option(
      '--force-variant',
      'take a variant that the definition does not list; not stored: reinstall asks for it again',
      { group: OS_GROUP },
    ),
    option(
      '--os-image <source>',
      'disk image for the first disk: a name (gnt-image list), a path that begins with /, ./ or ../, or an http, https, ftp URL; raw, qcow2, vmdk, vdi, vhdx, or raw in gz, xz, zst, bz2',
      { group: OS_GROUP, complete: 'file' },
    ),
    option(
      '--os-image-checksum <algo:hex>',
      'sha256:HEX or sha512:HEX of the image file; stored with it, "none" forgets it',
      {
        group: OS_GROUP,
      },
    ),
    option(
      '--image-format <format>',
      'what the image is: raw, qcow2, vmdk, vdi or vhdx, although its content does not show that; "auto" goes by the content, which is the default',
      { group: OS_GROUP, choices: ['auto', ...IMAGE_FORMATS] },
    ),
    yesNo('--os-image-grow <yes|no>', 'grow the last partition and its file system to the disk', {
      group: OS_GROUP,
    }),
    ...osParameterOptions(),
    option('--personalization-package <url>', '.tar.gz or .tgz laid over the disk last', {
      group: OS_GROUP,
    }),
    option(
      '--personalization-checksum <algo:hex>',
      'sha256:HEX or sha512:HEX of the package, compared before anything of it is used; stored with it, "none" forgets it',
      { group: OS_GROUP },
    ),
    option('--personalization-user <user>', 'user for downloading the package', {
      group: OS_GROUP,
    }),
    option(
      '--hooks <file>',
      'YAML document of hooks for the stages of the installation; run after those of cluster and OS, in the order of their names; stored for reinstall, and never shown; "default" forgets stored ones; repeatable',
      { group: OS_GROUP, complete: 'file', isRepeatable: true },
    ),
    option(
      '--personalization-password <value>',
      'password for it: @FILE, @- (stdin), or asked for on a terminal; never stored',
      { group: OS_GROUP, complete: 'file' },
    ),
    yesNo(
      '--enable-safe-install <yes|no>',
      'yes (default): all that can run in the appliance does, and only there. no: this host writes an image that --image-format says is raw, and runs the scripts of a trusted definition; a package and other images are opened in the appliance all the same; refused with scripts that are not trusted',
      { group: OS_GROUP },
    ),
    option(
      '--install-parameters <list>',
      `hypervisor parameters for installation runs only (${LIST}): accel, boot_order (disk, cdrom, network; with : between them), cdrom_image_path (path or URL), kernel_path, initrd_path, kernel_args, metadata_*; "none" takes stored ones back`,
      { group: OS_GROUP, isRepeatable: true },
    ),
    option(
      '--medium-success <report|poweroff>',
      'when an installation from a medium has succeeded: when it says so at /ganeti/latest/install/events (report, the default), or when its guest powers off or reboots',
      { group: OS_GROUP, choices: MEDIUM_SUCCESS },
    ),
    option(
      '--bootenv <name>',
      'boot into this boot environment through the channel (gnt-bootenv list); one whose name ends in -install installs the instance, in place of an image, and is "local" afterwards, which boots the disk; "none" takes it back',
      { group: OS_GROUP, complete: 'bootenv' },
    ),
    option(
      '--profiles <list>',
      'take OS parameters from these profiles too (gnt-profile list), the first above the others, below its own; in place of stored ones, "none" takes them back',
      { group: OS_GROUP, complete: 'profile' },
    ),
    option(
      '--appliance <name>',
      'install with this imported appliance (gnt-appliance list), or "built", whatever the OS definition and the cluster say; stored, "none" takes it back',
      { group: OS_GROUP },
    ),
    installTimeoutOption('stored by add and import, of this run alone for reinstall'),
  ];
}

/** @param remark how long the limit holds, for the help */
export function installTimeoutOption(remark: string): OptionMaker {
  return wholeNumber(
    '--install-timeout <seconds>',
    `longest time of the installation, or of another script of the OS; 0 is none (default: the instance's own, or else the cluster's); ${remark}`,
    { group: OS_GROUP },
  );
}

/** The timeout as modify has it, which can take back what is stored. */
export function storedTimeoutOption(): OptionMaker {
  return option(
    '--install-timeout <seconds>',
    'longest time of installations and other scripts of the OS; 0 is none, "default" the cluster\'s',
    { group: OS_GROUP },
  );
}

export function osParameterOptions(withSecret = true): readonly OptionMaker[] {
  return [
    option('-O, --os-parameters <list>', `OS parameters that anyone may see (${LIST})`, {
      group: OS_GROUP,
      isRepeatable: true,
    }),
    option(
      '--os-parameters-private <list>',
      `OS parameters that are stored and never shown (${LIST})`,
      { group: OS_GROUP, isRepeatable: true },
    ),
    ...(withSecret ? [secretOption()] : []),
  ];
}

export function secretOption(): OptionMaker {
  return option(
    '--os-parameters-secret <list>',
    `OS parameters that are never stored; write name=@FILE or name=@- (${LIST})`,
    { group: OS_GROUP, isRepeatable: true },
  );
}

export function waitReadyOptions(): readonly OptionMaker[] {
  const group = 'Job:';
  return [
    wholeNumber(
      '--wait-ready <seconds>',
      'wait until cloud-init in the guest is done, status 1 with its errors when it failed; a guest without it says itself that it is up. --wait-ready alone is 600 s, otherwise --wait-ready=SECONDS. A stock cloud-init tells with every datasource but EC2',
      { group, minimum: 1 },
    ),
    option(
      '--degraded-fails',
      'with --wait-ready: status 1 for a degraded boot too, which is done with warnings',
      { group },
    ),
  ];
}

/** What the guest is served in normal runs. */
export function metadataOptions(): readonly OptionMaker[] {
  const group = 'Metadata:';
  return [
    yesNo(
      '-C, --communication <yes|no>',
      'channel to the host in normal runs (default no); also -c',
      { group },
    ),
    // Ganeti's code has -c where its design said -C; commander knows one letter for an option.
    yesNo('-c <yes|no>', 'the same as -C', { isHidden: true }),
    option('--user-data <file>', 'user data; several become one multi-part document', {
      group,
      complete: 'file',
      isRepeatable: true,
    }),
    option('--vendor-data <file>', 'vendor data', { group, complete: 'file' }),
    option(
      '--run-list <file>',
      "scripts that the guest runs at boot, on demand and before it goes down: a ServerTemplate in right_st's format; 'default' takes all run lists away",
      { group, complete: 'file' },
    ),
    ...(['boot', 'operational', 'decommission'] as const).map((list) =>
      option(`--${list}-script <file>`, `script of the ${list} list; repeatable`, {
        group,
        complete: 'file',
        isRepeatable: true,
      }),
    ),
    option('--network-config <file>', 'network configuration for NoCloud', {
      group,
      complete: 'file',
    }),
    option('--ssh-key <file>', 'file with public SSH keys, one a line; repeatable', {
      group,
      complete: 'file',
      isRepeatable: true,
    }),
    option('--metadata <list>', `free metadata of the instance (${LIST})`, {
      group,
      isRepeatable: true,
    }),
    yesNo(
      '--seed-disk <yes|no>',
      'read-only CIDATA disk that leads stock images to the channel (default: as communication)',
      { group },
    ),
    option('--dialects <list>', 'what is served: ganeti,ec2,openstack,nocloud (default all)', {
      group,
    }),
    option(
      '--metadata-token <policy>',
      'session tokens (default optional); required: nothing is read or written over HTTP without one, in no dialect. Stock cloud-init asks for one with ec2 only: with openstack or nocloud over the network it finds no metadata then, phone_home does not get through, and scripts that use read and write must send X-aws-ec2-metadata-token',
      {
        group,
        choices: ['optional', 'required'],
      },
    ),
  ];
}

/** The machine itself. */
export function machineOptions(): readonly OptionMaker[] {
  const group = 'Machine:';
  return [
    option(
      '-B, --backend-parameters <list>',
      'memory=SIZE (MiB without a unit) and vcpus=N; repeatable',
      { group, isRepeatable: true },
    ),
    option(
      '-H, --hypervisor-parameters <list>',
      'kvm:accel=auto|kvm|tcg, boot_order, cdrom_image_path, kernel_path, initrd_path, kernel_args, metadata_hop_limit=1..255, metadata_request_rate, metadata_request_burst, metadata_connections, metadata_connection_rate, boot_report=vendor-data|user-data|no (how cloud-init is asked to tell its boot), decommission_timeout=SECONDS (for its decommission list; 180 without), systemd_credentials=yes|no, firmware=bios|uefi; repeatable',
      { group, isRepeatable: true },
    ),
    option(
      '--autostart <list>',
      'whether the node starts it by itself: yes (default) or no after a reboot of the host; priority=N (default 100, lower ones first), delay=SECONDS that it is given before the next, restarts=N in eight hours after a crash (default 0), lost_secrets=start|wait (default start)',
      { group, isRepeatable: true },
    ),
    option('--tags <list>', 'tags, comma separated: letters, digits and .+*/:@_-=', { group }),
  ];
}

export function diskOptions(): readonly OptionMaker[] {
  const group = 'Machine:';
  return [
    option(
      '-t, --disk-template <template>',
      'file: sparse raw files (default); sharedfile: the same in the folder that all nodes have; plain: LVM volumes, thin ones or not, as gnt-cluster modify --vg-name says, which are not copied, moved, migrated or taken over by failover, and are kept in snapshots where they are thin; zfs: the same with ZFS volumes, all of them thin, in the pool or dataset that gnt-cluster modify --zfs-pool names; diskless: no disk',
      {
        group,
        choices: ['file', 'sharedfile', 'plain', 'zfs', 'diskless'],
      },
    ),
    option('-s, --os-size <size>', 'one disk of this size: 10G, 512M; MiB without a unit', {
      group,
    }),
    option('--disk <n:list>', 'N:size=SIZE[,name=NAME]; repeatable, N from 0', {
      group,
      isRepeatable: true,
    }),
    option(
      '--net <n:list>',
      'N:mac=MAC|auto,mode=bridged|user,link=BRIDGE,name=NAME,mtu=BYTES; repeatable, N from 0. Or in a network (gnt-network): N:network=NAME,ip=pool, or an address of it. By DHCP, or ip=ADDRESS/PREFIX with gateway=, dns=, search=, routes=NETWORK/PREFIX@GATEWAY; several values have ; between them',
      { group, isRepeatable: true },
    ),
    option('--no-nics', 'no network cards but the channel', { group }),
    option('-n, --node <node>', 'primary node', { group, complete: 'node' }),
  ];
}

/** What modify does to NICs and disks. */
export function partOptions(): readonly OptionMaker[] {
  const group = 'Machine:';
  return [
    option(
      '--net <change>',
      'add:LIST or N:add,LIST, N:modify,LIST or N:LIST, N:remove, or remove for the last; N is its number, name or UUID, LIST as in add, where none takes a value away. Repeatable, one after the other. A running machine gets new ones at once where it can, all else at its next start',
      { group, isRepeatable: true },
    ),
    option(
      '--disk <change>',
      'add:size=SIZE[,name=NAME], N:name=NAME, N:remove. A running instance gets new ones at once where it can, and gives back the last, if that came so; of a stopped one any but the first can be removed, one at a time, and those behind it move up',
      { group, isRepeatable: true },
    ),
    option('--add-disk <size>', 'the same as --disk add:size=SIZE; repeatable', {
      group,
      isRepeatable: true,
    }),
    option('--remove-disk <n>', 'the same as --disk N:remove', { group }),
  ];
}
