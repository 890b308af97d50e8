import { type Block, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { exportFields } from '../../../cluster-cli/commands/backup/backup.ts';
import { catalogueFields, imageFields } from '../../../cluster-cli/fields/image-fields.ts';
import { instanceFields } from '../../../cluster-cli/fields/instance-fields.ts';
import {
  bootArchiveFields,
  bootEnvFields,
  groupFields,
  jobFields,
  networkFields,
  nodeFields,
  osFields,
  profileFields,
  snapshotFields,
} from '../../../cluster-cli/fields/other-fields.ts';
import type { FieldTable } from '../../../cluster-cli/render/select.ts';
import { asSentence } from '../../../cluster-cli/manual/sentence.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

export function listFieldsPage(): DocumentedPage {
  return documented('list-fields.md', 'List fields', {
    name: 'gnt-list-fields',
    section: 7,
    purpose: 'fields of the list commands',
    blocks: [
      heading('Description'),
      paragraph(
        'List commands take `-o FIELD,...` to choose columns and `-o +FIELD,...` to add some. ' +
          '`--sort FIELD,-FIELD` sorts; a minus reverses the order. A field without a value is shown as `-`.',
      ),
      paragraph('Sizes are in MiB unless `--units` chooses another unit.'),
      ...describe('gnt-instance list', instanceFields),
      ...describe('gnt-instance list-snapshots', snapshotFields),
      ...describe('gnt-backup list', exportFields),
      ...describe('gnt-image list', imageFields),
      ...describe('gnt-image list-catalogues', catalogueFields),
      ...describe('gnt-os list', osFields),
      ...describe('gnt-node list', nodeFields),
      ...describe('gnt-job list', jobFields),
      ...describe('gnt-group list', groupFields),
      ...describe('gnt-profile list', profileFields),
      ...describe('gnt-network list', networkFields),
      ...describe('gnt-bootenv list', bootEnvFields),
      ...describe('gnt-bootenv list-isos', bootArchiveFields),
    ],
    seeAlso: ['gnt(7)'],
  });
}

function describe<T>(
  command: string,
  { defaults, fields, indexed }: FieldTable<T>,
): readonly Block[] {
  return [
    heading(command),
    paragraph(`Default: ${defaults.map((name) => `\`${name}\``).join(', ')}.`),
    terms([
      ...fields.map(
        ({ name, description, kind }) =>
          [name, `${asSentence(description)}${kind === 'text' ? '' : ` (${kind})`}`] as const,
      ),
      ...(indexed ?? []).map(
        ({ prefix, description }) => [`${prefix}/N`, asSentence(description)] as const,
      ),
    ]),
  ];
}
