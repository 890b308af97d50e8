import type { Command } from 'commander';
import { IMAGE_FORMATS } from '#shared/contract/image-formats.ts';
import { createProgram, addCommand, jsonOption, option } from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { ImportOptions } from './image.ts';

const load = () => import('./image.ts');
const GROUP = 'Image:';
const CATALOGUES = 'Catalogues:';

export function createImageProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-image',
    'Manage images by name, for gnt-instance launch and gnt-instance add --os-image.',
  );
  addReading(program, context);
  addCommand(program, {
    group: CATALOGUES,
    usage: 'add <name> <source>',
    arguments: {
      name: 'Name of the catalogue: a-z, 0-9 and -',
      source: 'File on the node, or https URL of a document or of a simplestreams root',
    },
    completeArguments: ['catalogue', 'file'],
    summary: 'Add a catalogue of images',
    description:
      'A URL that ends in .json, .yaml or .yml is a document; any other URL is a simplestreams root, as incus and MAAS publish it. Images without a checksum are skipped.',
    explanation: [
      'A document has a list images. Each image has name, url, and checksum (sha256:HEX or sha512:HEX) or checksums (URL of the list of the publisher); optional: aliases, title, user, min_disk, format, cloud_init.',
      'A file on the node may also have signature (URL of a detached signature of the list of checksums) and keyring (a file on the node), both together.',
      'Of a simplestreams root, whole disks for the architecture of this node are listed. Images at addresses that are nearer to this node than the catalogue are skipped.',
      'Built-in and imported images keep their names. Write CATALOGUE:NAME for an image of the same name.',
    ],
    examples: [
      'gnt-image add site /etc/gnt/images.yaml',
      'gnt-image add incus https://images.linuxcontainers.org',
    ],
  }).action(async (name: string, source: string) => {
    await (await load()).runCatalogueAdd(context, name, source);
  });
  addCommand(program, {
    group: CATALOGUES,
    usage: 'update [names...]',
    arguments: { names: 'Catalogues (default: all that were added)' },
    completeArguments: ['catalogue'],
    summary: 'Read catalogues again',
    description:
      'A catalogue that cannot be read stays as it was. Lists of checksums are read whenever an image is used and need no update.',
  }).action(async (names: readonly string[]) => {
    await (await load()).runCatalogueUpdate(context, names);
  });
  addCommand(program, {
    usage: 'import <file>',
    arguments: { file: 'Image file, in any format of --os-image' },
    completeArguments: ['file'],
    summary: 'Import an image file under a name',
    description:
      'For a node without a network, or an image of your own. An imported image is preferred to every other image of that name, stays in the cache, and replaces an earlier import of that name.',
    options: [
      option('--name <name>', 'Name of the image, such as debian/12; required', {
        group: GROUP,
        isMandatory: true,
      }),
      option('--checksum <algo:hex>', 'Verify the file: sha256:HEX or sha512:HEX', {
        group: GROUP,
      }),
      option('--user <user>', 'User that cloud-init in the image creates, for gnt-instance ssh', {
        group: GROUP,
      }),
      option('--min-disk <size>', 'Smallest disk that the image fits on, in MiB or as 3G', {
        group: GROUP,
      }),
      option('--title <text>', 'Title for gnt-image list', { group: GROUP }),
      option('--image-format <format>', 'Format for gnt-image list (default auto: by content)', {
        group: GROUP,
        choices: ['auto', ...IMAGE_FORMATS],
      }),
    ],
    examples: [
      'gnt-image import debian-12-genericcloud-amd64.qcow2 --name debian/12 --user debian --min-disk 3G',
    ],
  }).action(async (file: string, options: ImportOptions) => {
    await (await load()).runImageImport(context, file, options);
  });
  addCommand(program, {
    usage: 'remove <name>',
    arguments: { name: 'Imported image, or added catalogue' },
    completeArguments: ['catalogue'],
    summary: 'Remove an imported image or a catalogue',
    description:
      'The file of an imported image stays while an instance names it for its next installation.',
    options: [option('-f, --force', 'Do not ask; required without a terminal', { group: GROUP })],
  }).action(async (name: string, options: ForceOptions) => {
    await (await load()).runImageRemove(context, name, options);
  });
  return program;
}

function addReading(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'Images; * and ? are wildcards (default: all)' },
    completeArguments: ['image'],
    summary: 'List images',
    options: listOptions(),
    notes: ['Fields: gnt-image list-fields.'],
    examples: ['gnt-image list', 'gnt-image list -o +aliases,source "debian/*"'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runImageList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'List the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runImageListFields(context, options);
  });
  addCommand(program, {
    usage: 'info <names...>',
    arguments: { names: 'Images' },
    completeArguments: ['image'],
    summary: 'Show images with their source and checksum',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runImageInfo(context, names, options);
  });
  addCommand(program, {
    group: CATALOGUES,
    usage: 'list-catalogues',
    aliases: ['catalogues'],
    summary: 'List catalogues',
    options: listOptions(),
  }).action(async (options: ListOptions) => {
    await (await load()).runCatalogues(context, options);
  });
}
