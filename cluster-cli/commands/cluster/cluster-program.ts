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
import type { IdentitySettings } from '#shared/contract/identity.ts';
import { awsKeys, googleKeys } from '#shared/contract/cloud-keys.ts';
import {
  MAX_JOIN_TOKEN_S,
  MAX_KEY_OVERLAP_S,
  MAX_PORT,
  MIN_JOIN_TOKEN_S,
} from '#shared/contract/number-limits.ts';
import { nicKeys } from '#shared/contract/parameter-keys.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import type { SubmitOptions } from '../submit.ts';
import type { ClusterOptions } from './cluster.ts';
import type { RenewOptions } from './crypto.ts';
import { JOIN_DESCRIPTION } from './join-description.ts';
import type { JoinTokenOptions } from './join.ts';
import type { CommandOptions, NodeOptions } from './remote.ts';
import type { VerifyOptions } from './verify.ts';
import type { WebOptions } from './web.ts';

const load = () => import('./cluster.ts');
const loadJoin = () => import('./join.ts');
const loadIdentity = () => import('./identity.ts');
const loadKeys = () => import('./crypto.ts');

function clusterOptions(): readonly OptionMaker[] {
  return [
    ...installOptions(),
    ...launchOptions(),
    ...imageOptions(),
    ...storageOptions(),
    ...serviceOptions(),
    ...remoteOptions(),
    ...reachOptions(),
    ...identityOptions(),
    ...jobOptions(),
  ];
}

function installOptions(): readonly OptionMaker[] {
  const group = 'Installation:';
  return [
    wholeNumber(
      '--install-timeout <seconds>',
      'Longest time of installations, exports and OS scripts; 0 is no limit (default 14400)',
      { group },
    ),
    yesNo('--host-scripts <yes|no>', 'Allow scripts of trusted OS definitions to run on nodes', {
      group,
    }),
    option('--default-os <os>', 'OS of new instances without OS, image and medium', {
      group,
      complete: 'os',
    }),
  ];
}

function launchOptions(): readonly OptionMaker[] {
  const group = 'Defaults of gnt-instance launch:';
  return [
    option('--default-size <size>', 'Size of the disk, in MiB or as 20G (default 10G)', { group }),
    option('--default-memory <size>', 'Memory, in MiB or as 2G (default 512M)', { group }),
    option('--default-vcpus <n>', 'Virtual processors (default 1)', { group }),
    option(
      '--default-net <list>',
      'NIC, as mode=bridged,link=br0, or no-nics (default mode=user)',
      {
        group,
        keys: { keys: nicKeys, syntax: 'key=value,… or no-nics' },
      },
    ),
    option('--default-network <name>', 'Network of the NIC, with an address of its pool', {
      group,
      complete: 'network',
    }),
  ];
}

function imageOptions(): readonly OptionMaker[] {
  const group = 'Images and packages:';
  return [
    option('--max-image-size <size>', 'Largest download, in MiB or as 200G (default 64G)', {
      group,
    }),
    wholeNumber(
      '--download-timeout <seconds>',
      'Longest time of a download; 0 is no limit (default 21600)',
      { group },
    ),
    wholeNumber(
      '--min-download-rate <bytes>',
      'Abort slower downloads, in bytes per second; 0 is no limit (default 4096)',
      { group },
    ),
    option('--image-key <name=@file>', 'Require signatures by this key (minisign or OpenPGP)', {
      group,
      isRepeatable: true,
    }),
    option(
      '--image-ca <@file>',
      'Trust these PEM certificates for https, besides those of the system',
      {
        group,
        complete: 'file',
      },
    ),
  ];
}

function storageOptions(): readonly OptionMaker[] {
  const group = 'Storage:';
  return [
    option('--shared-file-storage-dir <dir>', 'Directory on all nodes for sharedfile disks', {
      group,
    }),
    option('--vg-name <group[/pool]>', 'LVM volume group or thin pool for new plain disks', {
      group,
    }),
    option('--zfs-pool <pool[/dataset]>', 'ZFS pool or dataset for new zfs disks', { group }),
    option('--data-rate <size>', 'Bytes per second of a move, as 50M, or none (default)', {
      group,
    }),
    wholeNumber(
      '--low-space <percent>',
      'Warn if less of a file system is free; 0 is never (default 10)',
      { group },
    ),
  ];
}

function serviceOptions(): readonly OptionMaker[] {
  const group = 'Services for guests:';
  return [
    option(
      '--expose-service <name=port[/udp]:host:port>',
      'Forward a port of 169.254.169.254 to a host and port, or to unix:/PATH; repeatable',
      { group, isRepeatable: true },
    ),
    option('--package-mirror <name=url>', 'Let installations read below this URL; repeatable', {
      group,
      isRepeatable: true,
    }),
    option(
      '--relay <name=url,…>',
      'Relay requests of guests to this URL with a secret of the nodes; repeatable',
      { group, isRepeatable: true },
    ),
  ];
}

function remoteOptions(): readonly OptionMaker[] {
  const group = 'Remote API:';
  return [
    option('--remote-folders <dirs>', 'Folders that may be named, separated by commas', {
      group,
    }),
    option('--remote-hosts <hosts>', 'Hosts that URLs may name besides the internet', { group }),
  ];
}

function reachOptions(): readonly OptionMaker[] {
  const group = 'Private networks:';
  return [
    yesNo('--confine-guests <yes|no>', 'Keep all guests from private networks (default no)', {
      group,
    }),
    option('--guest-networks <networks>', 'Private networks that confined guests reach', { group }),
  ];
}

/** Written again, because help must not load the schemas. */
const POLICIES = ['no', 'yes', 'tagged'] as const satisfies IdentitySettings['policy'][];

function identityOptions(): readonly OptionMaker[] {
  const group = 'Identity tokens:';
  return [
    option(
      '--identity <policy>',
      'Give identity tokens to all instances (yes), tagged instances, or none (no, the default)',
      { group, choices: POLICIES },
    ),
    option('--identity-trust-domain <name>', 'SPIFFE trust domain (default: cluster name)', {
      group,
    }),
    option('--identity-issuer <url>', 'Issuer of tokens (default: https:// and the trust domain)', {
      group,
    }),
    option('--identity-audiences <list>', 'Allowed audiences, separated by commas (default: all)', {
      group,
    }),
    option('--identity-aws <list>', 'Exchange tokens for credentials of AWS or a compatible STS', {
      group,
      keys: { keys: awsKeys, syntax: 'key=value,… or none' },
    }),
    option('--identity-google <list>', 'Exchange tokens for access tokens of Google Cloud', {
      group,
      keys: { keys: googleKeys, syntax: 'key=value,… or none' },
    }),
    option('--identity-revoke <uuid>', 'Refuse tokens to this instance; repeatable', {
      group,
      isRepeatable: true,
    }),
  ];
}

function storeOptions(): readonly OptionMaker[] {
  const group = 'Store:';
  return [
    option('--store <url>', 'Redis that all nodes of the cluster share', { group }),
    option(
      '--cluster-key <file>',
      'Join with this copy of /var/lib/gnt/cluster.key of another node',
      {
        group,
        complete: 'file',
      },
    ),
  ];
}

export function createClusterProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-cluster',
    'Show and change settings of the whole cluster.',
  );
  addCommand(program, {
    usage: 'init [name]',
    arguments: { name: 'Name of the cluster' },
    summary: 'Create a cluster',
    description:
      'With --store: creates a cluster of several nodes in a Redis, or joins the cluster in it. gnt-noded must be stopped, and the node must have no instances; its embedded store is set aside. Without --store: reports the cluster of one node, which the first start of gnt-noded creates, and changes the given settings.',
    options: [...storeOptions(), ...clusterOptions()],
    essentials: ['--store', '--cluster-key', '--submit', '--dry-run', '--json'],
    notes: [
      'URL: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], rediss://… for TLS, unix:/PATH, unix://[USER]:PASSWORD@/PATH or sentinel://[[USER]:PASSWORD@]HOST:PORT,HOST:PORT/NAME. ?replicas=N waits for replicas. @FILE reads the URL from a file.',
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
    aliases: ['show'],
    summary: 'Show the settings of the cluster',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    await (await load()).runClusterInfo(context, options);
  });
  addCommand(program, {
    usage: 'modify',
    summary: 'Change settings of the cluster',
    options: [...clusterOptions(), option('--store <url>', '', { isHidden: true })],
    explanation: [
      '--expose-service: any local process can connect to a forwarded port of the node and pass for an instance. unix:/PATH is a socket that only users allowed by its mode can open.',
      '--image-key: with at least one key, every image and package needs a detached signature of one of the keys beside it: .minisig, .asc, .sig or .gpg.',
      '--remote-folders: the remote API may name images, packages, media and kernels below these folders only. All folders above them must belong to root.',
      '--identity tagged: instances with the tag gnt:identity get tokens. A tag gnt:identity=AUDIENCE allows one audience.',
      '--identity-revoke: issued tokens stay valid until they expire, at most 15 minutes.',
      '--identity-aws, --identity-google: replace all former keys. The tags gnt:aws-role=ARN and gnt:google-account=EMAIL of an instance override its role.',
      '--relay NAME=URL,auth=…: guests send requests to http://169.254.169.254/relay/NAME/. The node adds the secret of gnt-cluster set-relay-secret as auth=bearer (default), basic:USER, header:NAME or query:NAME. Further keys: access=tagged|all (default: instances with the tag gnt:relay=NAME), methods=GET+HEAD+POST, paths=/a+/b (default: all below the URL), rate=600 (requests per minute of an instance), max-size=1G (of a body), timeout=3600 (seconds).',
      '--vg-name and --zfs-pool: existing disks stay where they are.',
    ],
    notes: [
      'none unsets a value: --default-os none, --image-ca none, --expose-service apt=none, --package-mirror debian=none, --relay llm=none, --image-key release=none, --identity-revoke UUID=none.',
    ],
    examples: [
      'gnt-cluster modify --install-timeout 3600',
      'gnt-cluster modify --max-image-size 200G --download-timeout 86400',
      'gnt-cluster modify --expose-service apt=3142:127.0.0.1:3142',
      'gnt-cluster modify --expose-service dns=53/udp:127.0.0.1:53',
      'gnt-cluster modify --expose-service apt=none',
      'gnt-cluster modify --relay llm=https://llm.example.com,auth=bearer',
      'gnt-cluster modify --remote-folders /srv/images,/srv/iso',
      'gnt-cluster modify --remote-hosts images.example.lan,10.1.0.0/16',
      'gnt-cluster modify --confine-guests yes --guest-networks 10.1.0.0/16,10.2.0.53',
      'gnt-cluster modify --image-key release=@/root/minisign.pub',
      'gnt-cluster modify --image-ca @/etc/ssl/private-ca.pem',
      'gnt-cluster modify --identity yes --identity-issuer https://id.example.com',
      'gnt-cluster modify --identity-aws sts=https://sts.amazonaws.com',
      'gnt-cluster modify --package-mirror debian=http://deb.example.org/debian',
    ],
  }).action(async (options: ClusterOptions) => {
    await (await load()).runClusterModify(context, options);
  });
  addCommand(program, {
    usage: 'join-token',
    summary: 'Print a token with which one node joins',
    description:
      'The token works once. It contains the address and password of the store, and a secret that opens a temporary copy of the cluster key: protect it like the key.',
    options: [
      wholeNumber(
        '--lifetime <seconds>',
        `Lifetime of the token, at most ${MAX_JOIN_TOKEN_S} (default 600)`,
        {
          group: 'Token:',
          minimum: MIN_JOIN_TOKEN_S,
          maximum: MAX_JOIN_TOKEN_S,
        },
      ),
      jsonOption(),
    ],
    examples: ['gnt-cluster join-token | ssh node3.example.com gnt-cluster join'],
  }).action(async (options: JoinTokenOptions) => {
    await (await loadJoin()).runJoinToken(context, options);
  });
  addCommand(program, {
    usage: 'join [token]',
    arguments: { token: 'Token of gnt-cluster join-token, or @FILE, or - (stdin) (default: ask)' },
    summary: 'Join this node to a cluster',
    description: JOIN_DESCRIPTION,
    options: [],
    examples: ['gnt-cluster join', 'gnt-cluster join @/run/token && systemctl start gnt-noded'],
  }).action(async (token: string | undefined) => {
    await (await loadJoin()).runJoin(context, token);
  });
  addCommand(program, {
    usage: 'set-relay-secret <relay>',
    arguments: { relay: 'Name of the relay' },
    summary: 'Give the nodes the secret of a relay',
    description:
      'Reads the secret from a prompt, or from stdin. All nodes keep it in memory only, and send it to the server of the relay only. A node that restarts has lost it: repeat the command, or give gnt-noded a file by LoadCredential=gnt-relay.NAME:FILE of systemd.',
    options: [],
    examples: ['gnt-cluster set-relay-secret llm < /root/llm.key'],
  }).action(async (name: string) => {
    await (await import('./relays.ts')).runSetRelaySecret(context, name);
  });
  addCommand(program, {
    usage: 'renew-crypto',
    summary: 'Replace the cluster key, or the identity keys',
    description:
      'Works while the nodes run. Every node gets a new key, and every record is encrypted again. The old key, also that of a removed node, opens nothing afterwards. An interrupted renewal continues when the node that began it runs again.',
    options: [
      option('--skip <nodes>', 'Leave out these nodes, separated by commas; they must join again', {
        group: 'Renewal:',
      }),
      option('--new-identity-keys', 'Renew only the identity keys', {
        group: 'Renewal:',
      }),
      wholeNumber(
        '--overlap <seconds>',
        'Seconds between publication and use of new identity keys; 0: replace at once (default 3600)',
        { group: 'Renewal:', maximum: MAX_KEY_OVERLAP_S },
      ),
      jsonOption(),
    ],
    explanation: [
      '--new-identity-keys: the new keys are published at once and sign after --overlap. Former keys stay published until their last tokens have expired. After a leak of the keys, --overlap 0 removes the former keys.',
    ],
    examples: [
      'gnt-cluster renew-crypto',
      'gnt-cluster renew-crypto --skip node3.example.com',
      'gnt-cluster renew-crypto --new-identity-keys',
    ],
  }).action(async (options: RenewOptions) => {
    await (await loadKeys()).runRenewCrypto(context, options);
  });
  addCommand(program, {
    usage: 'identity <action> <dir>',
    arguments: { action: 'export', dir: 'Directory, created if missing' },
    summary: 'Write the public identity keys for a web server',
    description:
      'Writes the documents that verifiers of identity tokens read: OpenID discovery, the key sets, certificates for EC2 documents, and revoked instances. Serve the directory under the URL of the issuer, and repeat the command after each renewal of the keys and each revocation.',
    options: [],
    examples: ['gnt-cluster identity export /srv/www/identity'],
  }).action(async (action: string, directory: string) => {
    await (await loadIdentity()).runIdentity(context, action, directory);
  });
  addCommand(program, {
    usage: 'accept-records',
    summary: 'Accept the older records of a restored store',
    description:
      'A node refuses records that are older than those it has seen. After you restored a backup of the store, stop gnt-noded on each node (instances keep running), run this command on each node, and start gnt-noded again.',
    options: [option('-f, --force', 'Do not ask', { group: 'Records:' })],
    examples: ['gnt-cluster accept-records'],
  }).action(async (options: ForceOptions) => {
    await (await loadKeys()).runAcceptRecords(context, options);
  });
  addRemote(program, context);
  addTags(program, context);
  addCommand(program, {
    usage: 'web',
    summary: 'Serve the web page of the cluster on this host',
    description:
      'Serves the web page on 127.0.0.1 until Ctrl-C, and prints its address. The address works once; after its use the command prints the next one. The browser gets the rights of root.',
    explanation: [
      'To serve the page permanently, with users and TLS: gnt-noded --web HOST:PORT.',
      'From another computer, forward the port with ssh -L PORT:127.0.0.1:PORT.',
    ],
    options: [
      wholeNumber('--port <port>', 'TCP port (default: any free port)', {
        group: 'Page:',
        maximum: MAX_PORT,
      }),
    ],
    examples: ['gnt-cluster web', 'gnt-cluster web --port 8080'],
  }).action(async (options: WebOptions) => {
    await (await import('./web.ts')).runWeb(context, options);
  });
  addCommand(program, {
    usage: 'verify',
    summary: 'Check the nodes and the instances',
    description:
      'Runs the checks of gnt-node doctor on every node, and shows instances with errors. Exit status: 0 no errors, 1 an error was found, 3 the node daemon of this node cannot be reached. Warnings do not change the status. A node that does not answer is an error, unless it is marked offline.',
    options: [
      option('--error-codes', 'Print LEVEL:CHECK:KIND:NAME:MESSAGE for each finding', {
        group: 'Output:',
      }),
      jsonOption(),
    ],
    examples: ['gnt-cluster verify --error-codes | grep ^ERROR:'],
  }).action(async (options: VerifyOptions) => {
    await (await import('./verify.ts')).runClusterVerify(context, options);
  });
  return program;
}

function addRemote(program: Command, context: Context): void {
  const node = option('-n, --node <name>', 'Node; repeatable (default: all)', {
    group: 'Nodes:',
    isRepeatable: true,
    complete: 'node',
  });
  const explanation = [
    'Nodes are contacted one after another by the ssh of this node, as root and without questions: the known_hosts files must contain the key of each node, and each node must accept an SSH key of root on this node. Nodes marked offline are skipped.',
  ];
  addCommand(program, {
    usage: 'command <command...>',
    arguments: { command: 'Command; its words are joined with spaces for the shell of the node' },
    summary: 'Run a command on nodes by SSH',
    description:
      'Runs a command on each node by SSH, and last on this node without SSH. Each line of output begins with the name of the node. Exit status 1 if the command fails on a node.',
    explanation,
    options: [
      node,
      option('-M, --show-machine-names', '', { isHidden: true }),
      option('--failure-only', 'Print only the output of nodes where the command fails', {
        group: 'Output:',
      }),
    ],
    examples: [
      'gnt-cluster command uname -r',
      "gnt-cluster command -n node2.example.com 'apt-get update && apt-get install gnt'",
    ],
  }).action(async (words: readonly string[], options: CommandOptions) => {
    await (await import('./remote.ts')).runClusterCommand(context, words, options);
  });
  addCommand(program, {
    usage: 'copyfile <file>',
    arguments: { file: 'File of this node; it gets the same path, mode and time on the others' },
    completeArguments: ['file'],
    summary: 'Copy a file to nodes by SSH',
    description:
      'Copies a file of this node to nodes by scp. Exit status 1 if the copy to a node fails.',
    explanation,
    options: [node],
    examples: ['gnt-cluster copyfile /etc/gnt/rapi-users'],
  }).action(async (file: string, options: NodeOptions) => {
    await (await import('./remote.ts')).runCopyFile(context, file, options);
  });
}

function addTags(program: Command, context: Context): void {
  for (const [verb, key, summary] of [
    ['add-tags', 'addTags', 'Add tags to the cluster'],
    ['remove-tags', 'removeTags', 'Remove tags from the cluster'],
  ] as const) {
    addCommand(program, {
      usage: `${verb} <tags...>`,
      arguments: { tags: 'Tags, such as htools:iextags:service' },
      summary,
      options: jobOptions(),
    }).action(async (tags: readonly string[], options: SubmitOptions) => {
      const changes = key === 'addTags' ? { addTags: [...tags] } : { removeTags: [...tags] };
      await (await load()).runClusterTags(context, changes, options);
    });
  }
  addCommand(program, {
    usage: 'list-tags',
    summary: 'List the tags of the cluster, one per line',
  }).action(async () => {
    await (await load()).runClusterListTags(context);
  });
}
