import {
  autostartKeys,
  backendKeys,
  diskKeys,
  hypervisorKeys,
  installKeys,
  type KeyTable,
  nicKeys,
} from '#shared/contract/parameter-keys.ts';
import { heading, paragraph } from '../../../cluster-cli/manual/page.ts';
import { keyTerms } from '../../../cluster-cli/manual/key-terms.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

const TABLES: readonly (readonly [title: string, text: string, keys: KeyTable])[] = [
  ['NIC: --net', 'Syntax: `--net N:KEY=VALUE,...`.', nicKeys],
  ['Disk: --disk', 'Syntax: `--disk N:KEY=VALUE,...`.', diskKeys],
  ['Backend: -B', 'Syntax: `-B KEY=VALUE,...`.', backendKeys],
  ['Hypervisor: -H', 'Syntax: `-H KEY=VALUE,...`.', hypervisorKeys],
  ['Autostart: --autostart', 'Syntax: `--autostart yes|no,KEY=VALUE,...`.', autostartKeys],
];

export function parameterKeysPage(): DocumentedPage {
  return documented('parameter-keys.md', 'Keys of NICs, disks, backend and hypervisor', {
    name: 'gnt-parameters',
    section: 7,
    purpose: 'keys of --net, --disk, -B, -H, --install-parameters and --autostart',
    blocks: [
      heading('Description'),
      paragraph(
        'These options of `gnt-instance add`, `launch` and `modify` take lists of keys. ' +
          '`help` as the value, for example `--net help`, prints the keys.',
      ),
      paragraph(
        '`-KEY` removes a key and `KEY=default` resets it to its default, as in Ganeti. ' +
          'A comma in a value is written as `\\,`.',
      ),
      ...TABLES.flatMap(([title, text, keys]) => [heading(title), paragraph(text), keyTerms(keys)]),
      heading('Installation: --install-parameters'),
      paragraph(
        `The keys of \`-H\` that have an effect on an installation: ${Object.keys(installKeys)
          .map((key) => `\`${key}\``)
          .join(', ')}.`,
      ),
    ],
    seeAlso: ['gnt-instance-add(8)', 'gnt-instance-modify(8)'],
  });
}
