import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  createProgram,
  addCommand,
  jobOptions,
  option,
  wholeNumber,
} from '../../completion/command.ts';
import {
  diskOptions,
  installationOptions,
  installTimeoutOption,
  machineOptions,
  metadataOptions,
} from '../instance/options.ts';
import { LIST_SYNTAX, SECRETS } from '../instance/options.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import type { ExportOptions, ImportOptions } from './backup.ts';

const load = () => import('./backup.ts');
const NAME = { name: 'name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;
const GROUP = 'Job:';

export function createBackupProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-backup',
    'Exports instances, by the export script of their OS where it has one, and makes instances of exports.',
  );
  addCommand(program, {
    ...ONE,
    usage: 'export <name>',
    summary: 'dump the disks of an instance into a directory of its node',
    description:
      'Runs the export script of the OS definition once for each disk; what it prints is the dump. Without such a script the disks are dumped as they are, compressed (zstd), with all settings. A running instance is shut down for it and started again. An earlier export of the instance is replaced, when the new one is complete.',
    options: [
      wholeNumber('--shutdown-timeout <seconds>', 'time for the guest to shut down (default 120)', {
        group: GROUP,
      }),
      installTimeoutOption('for all dumps together'),
      ...jobOptions(),
    ],
    examples: ['gnt-backup export web1.example.com'],
  }).action(async (name: string, options: ExportOptions) => {
    await (await load()).runExport(context, name, options);
  });
  const WITHOUT = ['--os-image', '--install-parameters', '--medium-success'];
  addCommand(program, {
    usage: 'import <name>',
    arguments: { name: 'name of the new instance' },
    summary: 'make an instance of an export, and start it',
    description:
      'As gnt-instance add, but the disks are filled by the import script of the OS definition from the dumps; of an export of whole disks they are what they were, and only --net, -B, -H, --tags, --autostart and --install-timeout can be given. What is not given here is as it was exported; a network card keeps its MAC address when the instance keeps its name. Secrets are in no export.',
    options: [
      option(
        '--src-dir <directory>',
        'the export: name of the exported instance (default: the same name), or a directory of the node: its whole path, or ./PATH',
        { group: 'Operating system:', complete: 'file' },
      ),
      ...installationOptions().filter(
        ({ long }) => !WITHOUT.some((prefix) => long?.startsWith(prefix)),
      ),
      ...metadataOptions(),
      ...diskOptions(),
      ...machineOptions(),
      option('--no-start', 'do not start it after the import', { group: GROUP }),
      ...jobOptions(),
    ],
    notes: [LIST_SYNTAX, SECRETS],
    examples: [
      'gnt-backup import web1.example.com',
      'gnt-backup import --src-dir web1.example.com --no-start copy.example.com',
    ],
  }).action(async (name: string, options: ImportOptions) => {
    await (await load()).runImport(context, name, options);
  });
  addCommand(program, {
    usage: 'list',
    summary: 'list the exports on this node',
    options: listOptions(),
  }).action(async (options: ListOptions) => {
    await (await load()).runBackupList(context, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    arguments: { name: 'name of the exported instance' },
    summary: 'remove an export',
    options: [
      option('-f, --force', 'do not ask; off a terminal nothing is removed without it', {
        group: GROUP,
      }),
      ...jobOptions(),
    ],
  }).action(async (name: string, options: ForceOptions) => {
    await (await load()).runBackupRemove(context, name, options);
  });
  return program;
}
