import type { Command } from 'commander';
import { IMAGE_FORMATS } from '#shared/contract/image-formats.ts';
import { createProgram, addCommand, jsonOption, option } from '../../completion/command.ts';
import type { Context } from '../../terminal/context.ts';
import type { ForceOptions } from '../confirm-loss.ts';
import { listOptions, type ListOptions } from '../list.ts';
import type { ImportOptions } from './image.ts';

const load = () => import('./image.ts');
const GROUP = 'Image:';

export function createImageProgram(context: Context): Command {
  const program = createProgram(
    context,
    'gnt-image',
    'Images by name: what gnt-instance add --os-image and launch may be given instead of a URL.',
  );
  addReading(program, context);
  addCommand(program, {
    usage: 'add <name> <source>',
    arguments: {
      name: 'what the catalogue is called here: a-z, 0-9 and -',
      source: 'a file on the node, or an https URL: a document, or the root of simplestreams',
    },
    completeArguments: ['catalogue', 'file'],
    summary: 'add a catalogue of images',
    description:
      'A URL that ends in .json, .yaml or .yml is a document, any other the root of simplestreams, as incus and MAAS publish them; of these, whole disks for this machine are taken. A document has a list `images`, each with name, url, and checksum (sha256:HEX or sha512:HEX) or checksums (URL of the list that the publisher gives out); also aliases, title, user, min_disk, format, cloud_init. In a file of the node, signature (URL of a detached signature of that list) and keyring (a file of the node) may stand together, too: the list counts then only as far as that key signed it. Entries without a checksum are passed over, and those of a URL that lead to an address nearer to this node than the catalogue is. Names that are built in or imported stay what they are: write CATALOGUE:NAME for those.',
    examples: [
      'gnt-image add site /etc/gnt/images.yaml',
      'gnt-image add incus https://images.linuxcontainers.org',
    ],
  }).action(async (name: string, source: string) => {
    await (await load()).runCatalogueAdd(context, name, source);
  });
  addCommand(program, {
    usage: 'update [names...]',
    arguments: { names: 'catalogues; all that were added without names' },
    completeArguments: ['catalogue'],
    summary: 'read catalogues anew',
    description:
      'One that cannot be read stays as it was. What publishers list as checksums is asked for whenever an image is wanted, and needs no update.',
  }).action(async (names: readonly string[]) => {
    await (await load()).runCatalogueUpdate(context, names);
  });
  addCommand(program, {
    usage: 'import <file>',
    arguments: { file: 'image on the node, in any format that --os-image takes' },
    completeArguments: ['file'],
    summary: 'keep a copy of a file under a name',
    description:
      'For a node without a network, or an image of your own. It counts before every other image of that name, is never evicted from the cache, and takes the place of what was imported under the name before.',
    options: [
      option('--name <name>', 'what it is called: debian/12', {
        group: GROUP,
        isMandatory: true,
      }),
      option('--checksum <algo:hex>', 'sha256:HEX or sha512:HEX that the file must have', {
        group: GROUP,
      }),
      option('--user <user>', 'whom its cloud-init lets in', { group: GROUP }),
      option('--min-disk <size>', 'size of the disk that it needs', { group: GROUP }),
      option('--title <text>', 'what it is, for people', { group: GROUP }),
      option('--image-format <format>', 'its format, for people; found by content', {
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
    arguments: { name: 'an imported image, or a catalogue that was added' },
    completeArguments: ['catalogue'],
    summary: 'forget an imported image or a catalogue',
    description:
      'The file of an imported image stays as long as an instance may be installed again from it.',
    options: [
      option('-f, --force', 'do not ask; off a terminal nothing is removed without it', {
        group: GROUP,
      }),
    ],
  }).action(async (name: string, options: ForceOptions) => {
    await (await load()).runImageRemove(context, name, options);
  });
  return program;
}

function addReading(program: Command, context: Context): void {
  addCommand(program, {
    usage: 'list [names...]',
    arguments: { names: 'images; * and ? match several' },
    completeArguments: ['image'],
    summary: 'list images by name',
    options: listOptions(),
    notes: ['Fields: see gnt-image list-fields.'],
    examples: ['gnt-image list', 'gnt-image list -o +aliases,source "debian/*"'],
  }).action(async (names: readonly string[], options: ListOptions) => {
    await (await load()).runImageList(context, names, options);
  });
  addCommand(program, {
    usage: 'list-fields',
    summary: 'list the fields of list',
    options: [jsonOption()],
  }).action(async (options: { json?: boolean }) => {
    (await load()).runImageListFields(context, options);
  });
  addCommand(program, {
    usage: 'info <names...>',
    arguments: { names: 'images' },
    completeArguments: ['image'],
    summary: 'show all that is known of images',
    options: [jsonOption()],
  }).action(async (names: readonly string[], options: { json?: boolean }) => {
    await (await load()).runImageInfo(context, names, options);
  });
  addCommand(program, {
    usage: 'catalogues',
    summary: 'list catalogues',
    options: listOptions(),
  }).action(async (options: ListOptions) => {
    await (await load()).runCatalogues(context, options);
  });
}
