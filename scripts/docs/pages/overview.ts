import { type Block, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

export function overviewPage(pages: readonly DocumentedPage[]): DocumentedPage {
  const manual = pages.filter(({ isManual }) => isManual);
  const isProgram = ({ file, page }: DocumentedPage): boolean =>
    manual.some((each) => each.page.name === page.name) && file?.startsWith('commands/') === true;
  return documented('overview.md', 'Overview', {
    name: 'gnt',
    section: 7,
    purpose: 'metadata service and appliance-based installer for KVM/QEMU hosts',
    blocks: [
      heading('Description'),
      paragraph(
        'gnt-noded manages the instances of a node. Each instance has a channel: a private link-local ' +
          'network to its node. gnt-metad serves metadata on the channel. Installations run in the ' +
          'appliance, a read-only VM. The gnt-* commands talk to gnt-noded over a unix socket.',
      ),
      heading('Programs'),
      list(pages.filter(isProgram)),
      heading('Formats and tables'),
      list(manual.filter(({ page }) => page.section !== 8)),
      heading('Environment'),
      terms([
        ['GNT_ROOT', 'Prefix of every path. The default is `/`. Two roots are two nodes.'],
        ['NO_COLOR', 'Disables colours when it is not empty.'],
      ]),
    ],
    seeAlso: ['gnt-noded(8)', 'gnt-instance(8)', 'gnt-files(5)', 'gnt-errors(7)'],
  });
}

function list(pages: readonly DocumentedPage[]): Block {
  return terms(
    pages.map(({ page }) => [`${page.name}(${page.section})`, `${page.purpose}.`] as const),
  );
}
