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
const NAME = { name: 'BootEnv' } as const;

export function createBootEnvProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-bootenv',
    "Boot environments, in dr-provision's words: what an instance boots through its channel, of an archive or a package mirror, by files that are rendered for it from templates and its OS parameters. For all nodes of the cluster.",
  );
  addCommand(program, {
    usage: 'create <paths...>',
    arguments: { paths: 'files, or folders as dr-provision lays out its content' },
    completeArguments: ['file'],
    summary: 'take BootEnvs, templates, params and profiles',
    description:
      'Reads YAML or JSON with one object, a list of them, or a bundle (sections); folders with bootenvs/, templates/, params/ and profiles/; templates as plain files, called by their names. All objects are stored or none; an object replaces the stored one of its name. An object of a folder or bundle that cannot be used here is left out and named; a single file that cannot be used is refused. Instances that run keep what they were given until they are modified or started again. What has no meaning here (other architectures, OnlyUnknown, loaders by TFTP, tasks) is told and left out. A profile of a folder is merged into the one that there is, as public parameters; one that is private there is refused.',
    options: jobOptions(),
    examples: ['gnt-bootenv create debian-12.yaml', 'gnt-bootenv create ./content'],
  }).action(async (paths: readonly string[], options: SubmitOptions) => {
    await (await load()).runCreate(context, paths, options);
  });
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'BootEnvs; * and ? match several' },
    completeArguments: ['bootenv'],
    summary: 'list boot environments',
    options: listOptions(),
    examples: ['gnt-bootenv list -o name,os,instances'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runListFields(context, options);
  });
  addCommand(program, {
    usage: 'show [name]',
    arguments: NAME,
    completeArguments: ['bootenv'],
    summary: 'show a BootEnv as it is kept, a template or a param',
    description:
      'LeftOut is what of a BootEnv would do something in dr-provision, and does not here.',
    options: [...objectOptions('show'), jsonOption()],
  }).action(
    async (name: string | undefined, options: ObjectOptions & { readonly json?: boolean }) => {
      await (await load()).runShow(context, name, options);
    },
  );
  addCommand(program, {
    usage: 'destroy [name]',
    arguments: NAME,
    completeArguments: ['bootenv'],
    summary: 'forget a BootEnv that no instance is set to, a template or a param',
    description:
      'Refuses what an instance, or a BootEnv by its ID, names. What only templates name, by {{template}}, .CallTemplate or .Param, is forgotten all the same.',
    options: [...objectOptions('forget'), ...jobOptions()],
  }).action(async (name: string | undefined, options: ObjectOptions & SubmitOptions) => {
    await (await load()).runDestroy(context, name, options);
  });
  addCommand(program, {
    usage: 'uploadiso <name> [file]',
    arguments: { name: 'BootEnv', file: 'its IsoFile: a path, or an http, https or ftp URL' },
    completeArguments: ['bootenv', 'file'],
    summary: 'open the archive of a BootEnv on this node',
    description:
      "Takes the file, or what the BootEnv's IsoUrl leads to, compares its Sha256 and opens it in an appliance of its own: ISO 9660 or tar, plain or in gzip, xz, zstd or bzip2. Once for each content and node; every node that is to boot from it needs it.",
    options: jobOptions(),
    examples: ['gnt-bootenv uploadiso debian-12-install ./debian-12-netinst.iso'],
  }).action(async (name: string, file: string | undefined, options: SubmitOptions) => {
    await (await load()).runUploadIso(context, name, file, options);
  });
  addCommand(program, {
    usage: 'listisos [names...]',
    arguments: { names: 'IsoFiles; * and ? match several' },
    summary: 'list the archives that are open on this node',
    options: listOptions(),
    examples: ['gnt-bootenv listisos -o name,size,sha256'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runListIsos(context, names, options);
  });
  addCommand(program, {
    usage: 'destroyiso <isofile>',
    arguments: { isofile: 'IsoFile that it was opened as' },
    summary: 'take an opened archive from this node',
    description:
      'Refuses one that a BootEnv or a bootenv-customize names. A machine that boots from it keeps it to its end.',
    options: jobOptions(),
    examples: ['gnt-bootenv destroyiso debian-12-netinst.iso'],
  }).action(async (isoFile: string, options: SubmitOptions) => {
    await (await load()).runDestroyIso(context, isoFile, options);
  });
  addCommand(program, {
    usage: 'render <name> <instance>',
    arguments: { name: 'BootEnv', instance: 'instance, whatever it is set to' },
    completeArguments: ['bootenv', 'instance'],
    summary: 'print every file that an instance would be given',
    description:
      'Renders with the parameters of the instance and changes nothing. "<redacted>" stands for private and secret values; what a template decides by them, it decides by that word here. What cannot be rendered is told by template, line and column.',
    options: [jsonOption()],
    examples: ['gnt-bootenv render debian-12-install web1.example.com'],
  }).action(async (name: string, instance: string, options: { json?: boolean }) => {
    await (await load()).runRender(context, name, instance, options);
  });
  return program;
}

function objectOptions(verb: string) {
  return [
    option('--template <id>', `${verb} this template`),
    option('--param <name>', `${verb} this param`),
  ];
}
