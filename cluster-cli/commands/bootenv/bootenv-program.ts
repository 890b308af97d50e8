import type { Command } from 'commander';
import type { Context } from '../../terminal/context.ts';
import {
  createProgram,
  addCommand,
  jobOptions,
  jsonOption,
  option,
} from '../../completion/command.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { SubmitOptions } from '../submit.ts';
import type { ObjectOptions } from './bootenv.ts';

const load = () => import('./bootenv.ts');
const NAME = { name: 'Boot environment' } as const;
const ISOS = 'Archives:';

export function createBootEnvProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-bootenv',
    'Manage boot environments (BootEnv of dr-provision): kernels, archives and templates that an instance boots through its channel. They are shared by all nodes.',
  );
  addCommand(program, {
    usage: 'add <paths...>',
    aliases: ['create'],
    arguments: { paths: 'Files, or folders in the layout of dr-provision content' },
    completeArguments: ['file'],
    summary: 'Add boot environments, templates, params and profiles',
    description:
      'Reads YAML or JSON files with one object, a list of objects, or a bundle (sections); folders with bootenvs/, templates/, params/ and profiles/; and plain template files. Adds all usable objects or none. An object replaces the one of the same name, except default-ipxe.tmpl, which applies only to the BootEnvs added with it.',
    explanation: [
      'Leaves out an object of a folder or bundle that cannot be used, and prints its file, line and reason. Refuses a single file that cannot be used.',
      'Running instances keep their files until they are modified or started again. The command names parts without effect here: other architectures, OnlyUnknown, TFTP loaders, tasks.',
      'Profiles of a folder are merged into existing profiles as public parameters. A parameter that is private in the existing profile is refused.',
    ],
    options: jobOptions(),
    examples: ['gnt-bootenv add debian-12.yaml', 'gnt-bootenv add ./content'],
  }).action(async (paths: readonly string[], options: SubmitOptions) => {
    await (await load()).runCreate(context, paths, options);
  });
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'Boot environments; * and ? are wildcards (default: all)' },
    completeArguments: ['bootenv'],
    summary: 'List boot environments',
    options: listOptions(),
    examples: ['gnt-bootenv list -o name,os,instances'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runListFields(context, options);
  });
  addCommand(program, {
    usage: 'info [name]',
    aliases: ['show'],
    arguments: NAME,
    completeArguments: ['bootenv'],
    summary: 'Show a boot environment, a template or a param',
    description:
      'LeftOut names the parts of a boot environment that have an effect in dr-provision but not here.',
    options: [...objectOptions('Show'), jsonOption()],
  }).action(
    async (name: string | undefined, options: ObjectOptions & { readonly json?: boolean }) => {
      await (await load()).runShow(context, name, options);
    },
  );
  addCommand(program, {
    usage: 'remove [name]',
    aliases: ['destroy'],
    arguments: NAME,
    completeArguments: ['bootenv'],
    summary: 'Remove a boot environment, a template or a param',
    description:
      'Refused while an instance uses the boot environment, or a boot environment names the template by its ID. References from inside templates are not checked.',
    options: [...objectOptions('Remove'), ...jobOptions()],
  }).action(async (name: string | undefined, options: ObjectOptions & SubmitOptions) => {
    await (await load()).runDestroy(context, name, options);
  });
  addCommand(program, {
    group: ISOS,
    usage: 'add-iso <name> [file]',
    aliases: ['uploadiso'],
    arguments: {
      name: 'Boot environment',
      file: 'Path or URL of its IsoFile (default: its IsoUrl)',
    },
    completeArguments: ['bootenv', 'file'],
    summary: 'Unpack the archive of a boot environment on this node',
    description:
      'Verifies the archive by its Sha256 and unpacks it in an appliance: ISO 9660 or tar, plain or compressed with gzip, xz, zstd or bzip2. Every node that boots from the archive needs it once.',
    options: jobOptions(),
    examples: ['gnt-bootenv add-iso debian-12-install ./debian-12-netinst.iso'],
  }).action(async (name: string, file: string | undefined, options: SubmitOptions) => {
    await (await load()).runUploadIso(context, name, file, options);
  });
  addCommand(program, {
    group: ISOS,
    usage: 'list-isos [names...]',
    aliases: ['listisos'],
    arguments: { names: 'IsoFiles; * and ? are wildcards (default: all)' },
    summary: 'List the archives that are unpacked on this node',
    options: listOptions(),
    examples: ['gnt-bootenv list-isos -o name,size,sha256'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runListIsos(context, names, options);
  });
  addCommand(program, {
    group: ISOS,
    usage: 'remove-iso <isofile>',
    aliases: ['destroyiso'],
    arguments: { isofile: 'IsoFile of the archive' },
    summary: 'Remove an unpacked archive from this node',
    description:
      'Refused while a boot environment or a bootenv-customize parameter names the archive. A running instance that boots from it keeps it until it stops.',
    options: jobOptions(),
    examples: ['gnt-bootenv remove-iso debian-12-netinst.iso'],
  }).action(async (isoFile: string, options: SubmitOptions) => {
    await (await load()).runDestroyIso(context, isoFile, options);
  });
  addCommand(program, {
    usage: 'render <name> <instance>',
    arguments: { name: 'Boot environment', instance: 'Instance to render for' },
    completeArguments: ['bootenv', 'instance'],
    summary: 'Print the files that an instance would get',
    description:
      'Renders with the parameters of the instance and changes nothing. Private and secret values are <redacted>, also in conditions of templates. Errors name template, line and column.',
    options: [jsonOption()],
    examples: ['gnt-bootenv render debian-12-install web1.example.com'],
  }).action(async (name: string, instance: string, options: { json?: boolean }) => {
    await (await load()).runRender(context, name, instance, options);
  });
  return program;
}

function objectOptions(verb: string) {
  return [
    option('--template <id>', `${verb} this template`, { group: 'Object:' }),
    option('--param <name>', `${verb} this param`, { group: 'Object:' }),
  ];
}
