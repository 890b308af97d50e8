import { codeExplanations } from '#shared/errors/code-explanations.ts';
import { errorCodes, isErrorCode } from '#shared/errors/codes.ts';
import { type Block, heading, paragraph, terms } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

const GROUPS = [
  [2, 'Refused', 'The operation was refused. Nothing was changed.'],
  [1, 'Failed', 'The operation started and did not finish.'],
  [3, 'Not connected', 'The command cannot connect to gnt-noded.'],
  [130, 'Interrupted', 'The command was interrupted by a signal.'],
] as const;

export function errorCodesPage(): DocumentedPage {
  return documented('error-codes.md', 'Error codes', {
    name: 'gnt-errors',
    section: 7,
    purpose: 'error codes of gnt, with cause and remedy',
    blocks: [
      heading('Description'),
      paragraph(
        'Programs print a failure as `error[CODE]: message`, and `hint:` with the next step. ' +
          'Job records and the node API carry the same codes. A code is never reused for another meaning.',
      ),
      ...GROUPS.flatMap(describeGroup),
    ],
    seeAlso: ['gnt(7)'],
  });
}

function describeGroup([status, title, text]: (typeof GROUPS)[number]): readonly Block[] {
  const codes = Object.keys(errorCodes).filter(isErrorCode);
  return [
    heading(`${title}: exit status ${status}`),
    paragraph(text),
    terms(
      codes
        .filter((code) => errorCodes[code] === status)
        .sort()
        .map((code) => {
          const { cause, remedy } = codeExplanations[code];
          return [code, `${cause} ${remedy === 'None.' ? '' : remedy}`.trim()];
        }),
    ),
  ];
}
