import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  createProgram,
  addCommand,
  jobOptions,
  jsonOption,
  option,
  wholeNumber,
} from '../../completion/command.ts';
import {
  diskOptions,
  installationOptions,
  installTimeoutOption,
  machineOptions,
  uncheckedOptions,
  metadataOptions,
} from '../instance/options.ts';
import { LIST_SYNTAX, SECRETS } from '../instance/options.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import type { ExportOptions, ImportOptions } from './backup.ts';

const load = () => import('./backup.ts');
const NAME = { name: 'Name of the instance' } as const;
const ONE = { arguments: NAME, completeArguments: ['instance'] } as const;
const GROUP = 'Job:';

export function createBackupProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-backup',
    'Export instances, and create instances from exports.',
  );
  addCommand(program, {
    ...ONE,
    usage: 'export <name>',
    summary: 'Export an instance to a directory of its node',
    description:
      'Runs the export script of the OS definition once per disk and stores its output. Without such a script, the disks are stored whole, compressed with zstd. A running instance is shut down for the export and started again. A complete new export replaces the earlier one.',
    options: [
      wholeNumber('--shutdown-timeout <seconds>', 'Time for the guest to shut down (default 120)', {
        group: GROUP,
      }),
      installTimeoutOption('Abort after this time; 0 is no limit'),
      ...jobOptions(),
    ],
    examples: ['gnt-backup export web1.example.com'],
  }).action(async (name: string, options: ExportOptions) => {
    await (await load()).runExport(context, name, options);
  });
  const WITHOUT = ['--os-image', '--install-parameters', '--medium-success'];
  addCommand(program, {
    usage: 'import [name]',
    arguments: { name: 'Name of the new instance' },
    summary: 'Create an instance from an export, and start it',
    description:
      'Same as gnt-instance add, but the import script of the OS definition fills the disks. Parameters that are not given are as exported. A NIC keeps its MAC address if the instance keeps its name. Exports contain no secrets.',
    explanation: [
      "--all imports each folder of a directory under the name of its instance, and shows the settings in Ganeti's export that the new instance loses. A failed import does not stop the others. Exit status 1 if one failed. With --dry-run, no instance is created.",
      'An export of whole disks accepts only --net, -B, -H, --tags, --autostart and --install-timeout.',
    ],
    options: [
      option(
        '--src-dir <directory>',
        'Export: name of its instance (default: the new name), or a directory of the node',
        { group: 'Operating system:', complete: 'file' },
      ),
      option('--all <directory>', 'Import all exports in a directory of this node', {
        group: 'Operating system:',
        complete: 'file',
      }),
      ...installationOptions().filter(
        ({ long }) => !WITHOUT.some((prefix) => long?.startsWith(prefix)),
      ),
      ...metadataOptions(),
      ...diskOptions('as exported'),
      ...machineOptions(),
      option('--no-start', 'Do not start the instance after the import', { group: GROUP }),
      ...uncheckedOptions(),
      ...jobOptions(),
    ],
    essentials: [
      ...['--src-dir', '--all', '--os-type', '--os-parameters', '--os-parameters-secret', '--disk'],
      ...['--net', '--backend-parameters', '--node', '--no-start', '--submit', '--dry-run'],
      '--json',
    ],
    notes: [LIST_SYNTAX, SECRETS],
    examples: [
      'gnt-backup import web1.example.com',
      'gnt-backup import --all /srv/ganeti/export --dry-run',
      'gnt-backup import --src-dir web1.example.com --no-start copy.example.com',
    ],
  }).action(async (name: string | undefined, options: ImportOptions & { all?: string }) => {
    await (await load()).runImports(context, name, options);
  });
  addCommand(program, {
    usage: 'list',
    summary: 'List the exports on this node',
    options: listOptions(),
  }).action(async (options: ListOptions) => {
    await (await load()).runBackupList(context, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runBackupListFields(context, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    arguments: { name: 'Name of the exported instance' },
    summary: 'Remove an export',
    options: [
      option('-f, --force', 'Do not ask; required without a terminal', { group: GROUP }),
      ...jobOptions(),
    ],
  }).action(async (name: string, options: ForceOptions) => {
    await (await load()).runBackupRemove(context, name, options);
  });
  return program;
}
