import { Command, type Option } from 'commander';
import type { Context } from '../../context.ts';
import { addCommand, jobOptions, jsonOption, option, wholeNumber, yesNo } from '../command.ts';
import type { ClusterOptions } from './cluster.ts';

const load = () => import('./cluster.ts');

function clusterOptions(): readonly Option[] {
  const group = 'Cluster:';
  return [
    wholeNumber('--install-timeout <seconds>', 'longest time of an installation; 0 is none', {
      group,
    }),
    yesNo(
      '--host-scripts <yes|no>',
      'may scripts of trusted OS definitions run on the host',
      group,
    ),
    option(
      '--expose-service <name=port:host:port>',
      'let guests reach a service: port of 169.254.169.254, then host and port it goes to; NAME= takes it back; repeatable',
      { group, isRepeatable: true },
    ),
    option(
      '--package-mirror <name=url>',
      'let installations read packages below a URL, by way of the metadata service; NAME= takes it back; repeatable',
      { group, isRepeatable: true },
    ),
    option('--store <url>', 'where the cluster is stored; chosen at the first start of gnt-noded', {
      group,
    }),
    ...jobOptions(),
  ];
}

export function createClusterProgram(context: Context): Command {
  const program = new Command('gnt-cluster').description(
    'Shows and changes what holds for the whole cluster.',
  );
  addCommand(program, {
    usage: 'init [name]',
    arguments: { name: 'name of the cluster, to be sure of it' },
    summary: 'set a new cluster up',
    description:
      'The first start of gnt-noded on an empty root makes a cluster of one node, so there is nothing to make: this says so, and sets the options that are given.',
    options: clusterOptions(),
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
    options: clusterOptions(),
    examples: [
      'gnt-cluster modify --install-timeout 3600',
      'gnt-cluster modify --expose-service apt=3142:127.0.0.1:3142',
      'gnt-cluster modify --expose-service apt=',
      'gnt-cluster modify --package-mirror debian=http://deb.example.org/debian',
    ],
  }).action(async (options: ClusterOptions) => {
    await (await load()).runClusterModify(context, options);
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
