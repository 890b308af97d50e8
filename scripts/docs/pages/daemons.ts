import { createApplianceProgram, type ApplianceActions } from '../../../appliance/program.ts';
import { programPage } from '../../../cluster-cli/manual/command-pages.ts';
import { asSentence } from '../../../cluster-cli/manual/sentence.ts';
import { code, heading, type Page, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import {
  DESCRIPTION,
  flagsOf,
  isOptionName,
  OPTION_HELP,
  OPTIONS,
  SYNOPSIS,
} from '../../../metad/config/options.ts';
import { createNodedProgram } from '../../../noded/wiring/program.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';
import { standIn } from '../stand-in.ts';
import { commandPages } from './commands.ts';

const EXIT_STATUSES = [
  ['0', 'The daemon was stopped by a signal.'],
  ['1', 'The daemon failed.'],
  ['2', 'The daemon refused to start. Nothing was changed.'],
] as const;

/** Returns the pages of programs outside of cluster-cli. */
export function daemonPages(): readonly DocumentedPage[] {
  return [
    documented('commands/gnt-noded.md', 'gnt-noded', nodedPage()),
    documented('commands/gnt-metad.md', 'gnt-metad', metadPage()),
    ...commandPages(createApplianceProgram(standIn<ApplianceActions>())),
  ];
}

function nodedPage(): Page {
  const page = programPage(createNodedProgram(''), EXIT_STATUSES);
  return {
    ...page,
    blocks: [
      ...page.blocks,
      heading('Notes'),
      paragraph('The Debian package reads options from `/etc/default/gnt-noded`.'),
      paragraph(
        'SIGTERM stops the daemon. Instances continue to run, and the next start finds them.',
      ),
      paragraph('The log goes to stderr as JSON lines.'),
    ],
    seeAlso: ['gnt(7)', 'gnt-metad(8)', 'gnt-node(8)', 'gnt-files(5)'],
  };
}

function metadPage(): Page {
  return {
    name: 'gnt-metad',
    section: 8,
    purpose: 'metadata service for instances on 169.254.169.254',
    blocks: [
      heading('Synopsis'),
      code(SYNOPSIS.join('\n')),
      heading('Description'),
      ...DESCRIPTION.map(paragraph),
      heading('Options'),
      terms(
        Object.keys(OPTIONS)
          .filter(isOptionName)
          .map((name) => [flagsOf(name), asSentence(OPTION_HELP[name].text)]),
      ),
    ],
    seeAlso: ['gnt(7)', 'gnt-noded(8)', 'gnt-guest-api(7)'],
  };
}
