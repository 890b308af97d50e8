import type { z } from 'zod';
import { type catalogueEntry, MAX_ENTRIES } from '#shared/contract/image-catalogue.ts';
import { IMAGE_FORMATS } from '#shared/contract/image-formats.ts';
import { bullets, code, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

type Key = Exclude<keyof z.input<typeof catalogueEntry>, 'minDiskBytes' | 'cloudInit'>;

/** A field of an entry without a row does not compile. */
const FIELDS: Readonly<Record<Key | 'min_disk' | 'cloud_init', string>> = {
  name: 'Required. Up to four words separated by `/`, such as `debian/12`.',
  url: 'Required. HTTP or HTTPS URL of the image, without a login.',
  checksum: '`sha256:HEX` or `sha512:HEX` of the file. Required unless `checksums` is given.',
  checksums: 'HTTPS URL of a list of checksums that names the file of `url`.',
  signature: 'HTTPS URL of a detached OpenPGP signature of `checksums`. Needs `keyring`.',
  keyring: 'Absolute path of a keyring on the node. Only catalogues in a local file may name one.',
  aliases: 'Other names. At most 32.',
  title: 'Description for `gnt-image list`.',
  format: `Format of the image: ${IMAGE_FORMATS.map((each) => `\`${each}\``).join(', ')} or \`auto\`. Default: \`auto\`.`,
  user: 'Login user that cloud-init creates in the image.',
  min_disk: 'Minimum size of the first disk, such as `2G`. At most 1 TiB.',
  cloud_init: 'Version of cloud-init in the image.',
};

export function imageCataloguePage(): DocumentedPage {
  return documented('image-catalogue.md', 'Image catalogue format', {
    name: 'gnt-catalogue',
    section: 5,
    purpose: 'format of image catalogues',
    blocks: [
      heading('Description'),
      paragraph(
        'A catalogue gives images names. `gnt-image add NAME SOURCE` adds one to the node. SOURCE is one of:',
      ),
      bullets([
        'the absolute path of a YAML or JSON document on the node (`.yaml`, `.yml`, `.json`);',
        'the HTTPS URL of such a document; relative URLs in it are relative to the document;',
        'the HTTPS URL of a simplestreams server, which has `streams/v1/index.json`.',
      ]),
      paragraph(
        'The document has one key, `images`, with a list of entries. An entry that breaks a rule is ' +
          'ignored and counted in the field `refused` of `gnt-image list-catalogues`.',
      ),
      heading('Fields of an entry'),
      terms(Object.entries(FIELDS)),
      heading('Limits'),
      terms([
        ['Document', '16 MiB.'],
        ['Entries', `${MAX_ENTRIES}.`],
        [
          'Addresses',
          'A remote catalogue must not lead to an address closer to the node than itself.',
        ],
      ]),
      heading('Example'),
      code(
        [
          'images:',
          '  - name: site/base',
          '    aliases: [base]',
          '    title: Base image of this site',
          '    url: https://images.example.com/base.qcow2',
          '    checksums: https://images.example.com/SHA256SUMS',
          '    user: admin',
          '    min_disk: 4G',
        ].join('\n'),
        'yaml',
      ),
    ],
    seeAlso: ['gnt-image(8)', 'gnt-image-add(8)'],
  });
}
