import type { Command } from 'commander';
import {
  addCommand,
  createProgram,
  jobOptions,
  jsonOption,
  option,
} from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import { LIST_SYNTAX } from '../instance/options.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { SubmitOptions } from '../submit.ts';
import type { NetworkOptions } from './network.ts';

const load = () => import('./network.ts');

const group = 'Network:';
const NAME = { arguments: { name: 'Network' }, completeArguments: ['network'] } as const;

export function createNetworkProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-network',
    'Manage networks with addresses for NICs of instances: on bridges of the nodes, or created by the nodes with DHCP, DNS and NAT.',
  );
  addReading(program, context);
  addCommand(program, {
    usage: 'add <name>',
    arguments: { name: 'Name: lower-case letters, digits and dashes, such as lan' },
    summary: 'Add a network; connect it to nodes next',
    options: [
      option('--network <cidr>', 'IPv4 network from /30 to /16, such as 10.9.0.0/24; required', {
        group,
        isMandatory: true,
      }),
      option('--gateway <address>', 'Gateway; for a nat network, the address of the nodes in it', {
        group,
      }),
      option('--add-reserved-ips <list>', 'Reserve addresses: instances do not get them', {
        group,
      }),
      option(
        '--mac-prefix <prefix>',
        'First three bytes of the MAC addresses of its NICs, as aa:00:01',
        {
          group,
        },
      ),
      option('--tags <list>', 'Set tags, separated by commas', { group }),
      ...jobOptions(),
    ],
    notes: [LIST_SYNTAX],
    examples: ['gnt-network add --network 10.9.0.0/24 --gateway 10.9.0.1 lan'],
  }).action(async (name: string, options: NetworkOptions & { readonly network: string }) => {
    await (await load()).runNetworkAdd(context, name, options);
  });
  addCommand(program, {
    usage: 'modify <name>',
    ...NAME,
    summary: 'Change a network; its addresses stay',
    options: [
      option('--gateway <address>', 'Set the gateway; none unsets it', { group }),
      option('--add-reserved-ips <list>', 'Reserve addresses: instances do not get them', {
        group,
      }),
      option('--remove-reserved-ips <list>', 'Release reserved addresses', {
        group,
      }),
      option(
        '--mac-prefix <prefix>',
        'First three bytes of the MAC addresses of new NICs; none unsets it',
        {
          group,
        },
      ),
      ...jobOptions(),
    ],
    notes: [LIST_SYNTAX],
    examples: ['gnt-network modify --add-reserved-ips 10.9.0.2,10.9.0.3 lan'],
  }).action(async (name: string, options: NetworkOptions) => {
    await (await load()).runNetworkModify(context, name, options);
  });
  addConnecting(program, context);
  addTags(program, context);
  return program;
}

function addReading(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'Networks; * and ? are wildcards (default: all)' },
    completeArguments: ['network'],
    summary: 'List networks',
    options: listOptions(),
    examples: ['gnt-network list -o name,network,free_count,inst_list'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runNetworkList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runNetworkListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    arguments: { names: 'Networks (default: all)' },
    completeArguments: ['network'],
    summary: 'Show networks with their addresses and instances',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runNetworkInfo(context, names, options);
  });
}

function addConnecting(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'connect <name> [words...]',
    arguments: {
      name: 'Network',
      words: '[NODES] bridged BRIDGE, or [NODES] nat (default: all nodes)',
    },
    completeArguments: ['network', 'node'],
    summary: 'Connect a network to nodes',
    description:
      'bridged BRIDGE uses a bridge that exists on the node; guests configure their addresses themselves (cloud-init). nat creates a bridge with DHCP and DNS; guests reach the outside by NAT, but neither the node nor guests on other nodes. A network is connected in the same way on all of its nodes.',
    options: jobOptions(),
    examples: ['gnt-network connect lan nat', 'gnt-network connect office node1 bridged br0'],
  }).action(async (name: string, words: readonly string[], options: SubmitOptions) => {
    await (await load()).runNetworkConnect(context, name, words, options);
  });
  addCommand(program, {
    usage: 'disconnect <name> [nodes...]',
    arguments: { name: 'Network', nodes: 'Nodes (default: all)' },
    completeArguments: ['network', 'node'],
    summary: 'Disconnect a network from nodes without instances in it',
    options: jobOptions(),
  }).action(async (name: string, nodes: readonly string[], options: SubmitOptions) => {
    await (await load()).runNetworkDisconnect(context, name, nodes, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    ...NAME,
    summary: 'Remove a network without nodes and instances',
    options: jobOptions(),
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load()).runNetworkRemove(context, name, options);
  });
}

function addTags(program: Command, context: Context): void {
  for (const [verb, key, summary] of [
    ['add-tags', 'addTags', 'Add tags to a network'],
    ['remove-tags', 'removeTags', 'Remove tags from a network'],
  ] as const) {
    addCommand(program, {
      usage: `${verb} <name> <tags...>`,
      arguments: { name: 'Network', tags: 'Tags' },
      completeArguments: ['network'],
      summary,
      options: jobOptions(),
    }).action(async (name: string, tags: readonly string[], options: SubmitOptions) => {
      const changes = key === 'addTags' ? { addTags: [...tags] } : { removeTags: [...tags] };
      await (await load()).runNetworkTags(context, name, changes, options);
    });
  }
  addCommand(program, {
    usage: 'list-tags <name>',
    ...NAME,
    summary: 'List the tags of a network, one per line',
  }).action(async (name: string) => {
    await (await load()).runNetworkListTags(context, name);
  });
}
