import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  createProgram,
  addCommand,
  jobOptions,
  jsonOption,
  option,
  wholeNumber,
  yesNo,
  type OptionMaker,
} from '../../completion/command.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import type { ClusterOptions } from './cluster.ts';
import type { RenewOptions } from './crypto.ts';
import { JOIN_DESCRIPTION } from './join-description.ts';
import type { JoinTokenOptions } from './join.ts';

const load = () => import('./cluster.ts');
const loadJoin = () => import('./join.ts');
const loadKeys = () => import('./crypto.ts');

function clusterOptions(): readonly OptionMaker[] {
  const group = 'Cluster:';
  return [
    wholeNumber(
      '--install-timeout <seconds>',
      'longest time of an installation, an export or another script of an OS, for instances and commands that say nothing else (default 14400); 0 is none',
      {
        group,
      },
    ),
    yesNo('--host-scripts <yes|no>', 'may scripts of trusted OS definitions run on the host', {
      group,
    }),
    option(
      '--default-os <os>',
      'OS, or OS+VARIANT, of new instances that name neither an OS nor an image nor a medium; none takes it back',
      { group, complete: 'os' },
    ),
    option('--default-size <size>', 'disk of gnt-instance launch (10G); default takes it back', {
      group,
    }),
    option('--default-memory <size>', 'memory of gnt-instance launch; default takes it back', {
      group,
    }),
    option('--default-vcpus <n>', 'processors of gnt-instance launch; default takes it back', {
      group,
    }),
    option(
      '--default-net <list>',
      'network card of gnt-instance launch, as behind --net 0: (mode=bridged,link=br0), or none; default (mode=user) takes it back',
      { group },
    ),
    option(
      '--default-network <name>',
      'network of gnt-instance launch, with an address of its pool; default (mode=user) takes it back',
      { group, complete: 'network' },
    ),
    option('--max-image-size <size>', 'largest image that a URL may have, as it is published', {
      group,
    }),
    wholeNumber(
      '--download-timeout <seconds>',
      'longest time of the download of an image or a package; 0 is none',
      { group },
    ),
    wholeNumber(
      '--min-download-rate <bytes>',
      'bytes a second below which the server of an image or a package is given up; 0 is none',
      { group },
    ),
    option(
      '--remote-folders <dirs>',
      'folders of the nodes, separated by commas, below which the remote API may name images, packages, media and kernels; all folders above them have to belong to root; none takes all back',
      { group },
    ),
    option(
      '--shared-file-storage-dir <dir>',
      'folder that every node has mounted there, for instances with the disk template sharedfile; none takes it back, while no instance has such disks',
      { group },
    ),
    option(
      '--vg-name <group[/pool]>',
      'LVM volume group, or a thin pool in it, on each node that has it, for new disks of the disk template plain; none takes it back, and the disks that there are stay where they are',
      { group },
    ),
    option(
      '--zfs-pool <pool[/dataset]>',
      'ZFS pool, or a dataset in it, on each node that has it, for new disks of the disk template zfs; none takes it back, and the disks that there are stay where they are',
      { group },
    ),
    wholeNumber(
      '--low-space <percent>',
      'warn, after a job that promises disk space and in gnt-node doctor, where less of a file system is free (10) or the disks may grow beyond it; 0: never after a job',
      { group },
    ),
    option(
      '--remote-hosts <hosts>',
      'names, addresses and networks, separated by commas, that URLs of the remote API may lead to beside the internet; none takes all back',
      { group },
    ),
    option(
      '--expose-service <name=port[/udp]:host:port>',
      'let guests reach a service: port of 169.254.169.254, then host and port it goes to, by TCP or with /udp by UDP, or unix:/PATH (any local process can connect to a port and pass for an instance, to a socket who its mode allows); NAME= takes it back; repeatable',
      { group, isRepeatable: true },
    ),
    option(
      '--package-mirror <name=url>',
      'let installations read packages below a URL, by way of the metadata service; NAME= takes it back; repeatable',
      { group, isRepeatable: true },
    ),
    option(
      '--image-key <name=@file>',
      'public key of minisign or OpenPGP. Once there is one, every image and package needs a detached signature of one of them beside it: .minisig, .asc, .sig or .gpg; NAME= takes it back; repeatable',
      { group, isRepeatable: true },
    ),
    option(
      '--image-ca <@file>',
      "PEM certificates of authorities that https servers of images, catalogues and packages are trusted by, besides the system's; none takes them back",
      { group, complete: 'file' },
    ),
    ...jobOptions(),
  ];
}

function storeOptions(): readonly OptionMaker[] {
  const group = 'Store:';
  return [
    option('--store <url>', 'a Redis that the nodes of the cluster have in common', { group }),
    option('--cluster-key <file>', "copy of another node's var/lib/gnt/cluster.key, to join it", {
      group,
      complete: 'file',
    }),
  ];
}

export function createClusterProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-cluster',
    'Shows and changes what holds for the whole cluster.',
  );
  addCommand(program, {
    usage: 'init [name]',
    arguments: { name: 'name of the cluster, to be sure of it' },
    summary: 'set a new cluster up',
    description:
      'With --store: create a cluster of several nodes in a Redis, or join the cluster in it. gnt-noded must be stopped, and the node must have no instances; its embedded store is set aside. Without --store: report the cluster of one node, which the first start of gnt-noded creates, and change the given settings.',
    options: [...clusterOptions(), ...storeOptions()],
    notes: [
      'URL: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], rediss://… for TLS, unix:/PATH or unix://[USER]:PASSWORD@/PATH, sentinel://[[USER]:PASSWORD@]HOST:PORT,HOST:PORT/NAME, each with ?replicas=N if wanted; @FILE takes it from a file.',
    ],
    examples: [
      'gnt-cluster init --store redis://store.example.com',
      'gnt-cluster init --store redis://store.example.com --cluster-key /root/cluster.key',
    ],
  }).action(async (name: string | undefined, options: ClusterOptions) => {
    await (await load()).runClusterInit(context, name, options);
  });
  addCommand(program, {
    usage: 'info',
    summary: 'show the cluster',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    await (await load()).runClusterInfo(context, options);
  });
  addCommand(program, {
    usage: 'modify',
    summary: 'change the cluster',
    options: [...clusterOptions(), option('--store <url>', '', { isHidden: true })],
    examples: [
      'gnt-cluster modify --install-timeout 3600',
      'gnt-cluster modify --max-image-size 200G --download-timeout 86400',
      'gnt-cluster modify --expose-service apt=3142:127.0.0.1:3142',
      'gnt-cluster modify --expose-service dns=53/udp:127.0.0.1:53',
      'gnt-cluster modify --expose-service apt=',
      'gnt-cluster modify --remote-folders /srv/images,/srv/iso',
      'gnt-cluster modify --remote-hosts images.example.lan,10.1.0.0/16',
      'gnt-cluster modify --image-key release=@/root/minisign.pub',
      'gnt-cluster modify --image-ca @/etc/ssl/private-ca.pem',
      'gnt-cluster modify --package-mirror debian=http://deb.example.org/debian',
    ],
  }).action(async (options: ClusterOptions) => {
    await (await load()).runClusterModify(context, options);
  });
  addCommand(program, {
    usage: 'join-token',
    summary: 'make a word by which one node joins',
    description:
      'Prints a word that is good once and for ten minutes. It has the address of the store, password included, and a secret that opens the copy of the key that the store keeps for it meanwhile: hand it over as you would hand over the key.',
    options: [
      wholeNumber('--lifetime <seconds>', 'how long it is good (default 600, at most 86400)', {
        group: 'Token:',
        minimum: 10,
      }),
      jsonOption(),
    ],
    examples: ['gnt-cluster join-token | ssh node3.example.com gnt-cluster join'],
  }).action(async (options: JoinTokenOptions) => {
    await (await loadJoin()).runJoinToken(context, options);
  });
  addCommand(program, {
    usage: 'join [token]',
    arguments: { token: 'what join-token printed; @FILE, - for stdin; asked for without it' },
    summary: 'make this node one of a cluster',
    description: JOIN_DESCRIPTION,
    options: [],
    examples: ['gnt-cluster join', 'gnt-cluster join @/run/token && systemctl start gnt-noded'],
  }).action(async (token: string | undefined) => {
    await (await loadJoin()).runJoin(context, token);
  });
  addCommand(program, {
    usage: 'renew-crypto',
    summary: 'exchange the key of the cluster',
    description:
      'While the nodes run: each gets a new key, every record is sealed anew, and the old key is forgotten. Who has only the old one, as a node that was removed, can read nothing afterwards. Interrupted, it goes on when the node that began it runs again.',
    options: [
      option(
        '--skip <nodes>',
        'nodes that do not answer, separated by commas: they are left behind, and join anew (gnt-cluster init --cluster-key)',
        { group: 'Renewal:' },
      ),
      jsonOption(),
    ],
    examples: ['gnt-cluster renew-crypto', 'gnt-cluster renew-crypto --skip node3.example.com'],
  }).action(async (options: RenewOptions) => {
    await (await loadKeys()).runRenewCrypto(context, options);
  });
  addCommand(program, {
    usage: 'accept-records',
    summary: 'take the records of a store that was restored',
    description:
      'A node refuses records that are older than those it has seen: who can write to the store could otherwise undo what was changed. After a backup of the store was put back on purpose, stop gnt-noded on each node (instances go on), run this there, and start it again.',
    options: [option('-f, --force', 'do not ask', { group: 'Records:' })],
    examples: ['gnt-cluster accept-records'],
  }).action(async (options: ForceOptions) => {
    await (await loadKeys()).runAcceptRecords(context, options);
  });
  addCommand(program, {
    usage: 'verify',
    summary: 'check the nodes and the instances',
    description: 'Exit status 1 when something is wrong.',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    await (await load()).runClusterVerify(context, options);
  });
  return program;
}
