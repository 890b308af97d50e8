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
const NAME = { arguments: { name: 'network' }, completeArguments: ['network'] } as const;

export function createNetworkProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-network',
    'Networks with addresses that instances get (gnt-instance add --net 0:network=NAME,ip=pool): on bridges that the nodes have, or made by the nodes themselves, with DHCP, names and NAT.',
  );
  addReading(program, context);
  addCommand(program, {
    usage: 'add <name>',
    arguments: { name: 'lower-case letters, digits and dashes, such as lan' },
    summary: 'add a network, which is connected on no node yet',
    options: [
      option('--network <cidr>', 'IPv4 network, from /30 to /16, such as 10.9.0.0/24', {
        group,
        isMandatory: true,
      }),
      option('--gateway <address>', 'its gateway: of a network made by nodes, their own address', {
        group,
      }),
      option('--add-reserved-ips <list>', 'addresses that no instance gets', { group }),
      option('--mac-prefix <prefix>', 'first three bytes of the MACs of its cards (aa:00:01)', {
        group,
      }),
      option('--tags <list>', 'tags, comma separated: letters, digits and .+*/:@_-=', { group }),
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
    summary: 'change a network; its addresses stay',
    options: [
      option('--gateway <address>', 'its gateway, or none', { group }),
      option('--add-reserved-ips <list>', 'addresses that no instance gets', { group }),
      option('--remove-reserved-ips <list>', 'reserved addresses that instances may get', {
        group,
      }),
      option('--mac-prefix <prefix>', 'first three bytes of MACs of cards to come, or none', {
        group,
      }),
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
    arguments: { names: 'networks; * and ? match several' },
    completeArguments: ['network'],
    summary: 'list networks',
    options: listOptions(),
    examples: ['gnt-network list -o name,network,free_count,inst_list'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runNetworkList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runNetworkListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [names...]',
    arguments: { names: 'networks; all without a name' },
    completeArguments: ['network'],
    summary: 'show networks with their addresses and whose they are',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runNetworkInfo(context, names, options);
  });
}

function addConnecting(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'connect <name> [words...]',
    arguments: {
      name: 'network',
      words: 'nodes (all without one), then bridged and the bridge, or nat',
    },
    completeArguments: ['network', 'node'],
    summary: 'say how nodes reach a network: [NODE…] bridged LINK, or [NODE…] nat',
    description:
      'bridged LINK: a bridge that the node has; its guests configure their addresses themselves (cloud-init). nat: the node makes a bridge with DHCP and names for its guests, who reach what is behind its default route by NAT, neither the node itself nor each other across nodes; it is gone with disconnect. A network is the same on all of its nodes.',
    options: jobOptions(),
    examples: ['gnt-network connect lan nat', 'gnt-network connect office node1 bridged br0'],
  }).action(async (name: string, words: readonly string[], options: SubmitOptions) => {
    await (await load()).runNetworkConnect(context, name, words, options);
  });
  addCommand(program, {
    usage: 'disconnect <name> [nodes...]',
    arguments: { name: 'network', nodes: 'nodes; all without one' },
    completeArguments: ['network', 'node'],
    summary: 'take a network from nodes, none of whose instances is in it',
    options: jobOptions(),
  }).action(async (name: string, nodes: readonly string[], options: SubmitOptions) => {
    await (await load()).runNetworkDisconnect(context, name, nodes, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    ...NAME,
    summary: 'forget a network that is connected nowhere and that no instance is in',
    options: jobOptions(),
  }).action(async (name: string, options: SubmitOptions) => {
    await (await load()).runNetworkRemove(context, name, options);
  });
}

function addTags(program: Command, context: Context): void {
  for (const [verb, key, summary] of [
    ['add-tags', 'addTags', 'add tags to a network'],
    ['remove-tags', 'removeTags', 'remove tags from a network'],
  ] as const) {
    addCommand(program, {
      usage: `${verb} <name> <tags...>`,
      arguments: { name: 'network', tags: 'words' },
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
    summary: 'show the tags of a network, one a line',
  }).action(async (name: string) => {
    await (await load()).runNetworkListTags(context, name);
  });
}
