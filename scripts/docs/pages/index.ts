import { type Block, bullets, heading, paragraph } from '../../../cluster-cli/manual/page.ts';
import { documented, type DocumentedPage } from '../documented-page.ts';

export function indexPage(pages: readonly DocumentedPage[]): DocumentedPage {
  const isProgram = ({ file }: DocumentedPage): boolean => file?.startsWith('commands/') === true;
  return documented(
    'README.md',
    'Reference',
    {
      name: 'reference',
      section: 7,
      purpose: 'index of the reference',
      blocks: [
        paragraph(
          'These pages are generated from the code by `npm run docs`. `npm run check` fails when they are out of date.',
        ),
        heading('Programs'),
        list(pages.filter(isProgram)),
        heading('Tables and formats'),
        list(pages.filter((page) => !isProgram(page))),
      ],
    },
    false,
  );
}

function list(pages: readonly DocumentedPage[]): Block {
  return bullets(
    pages.flatMap(({ file, title, page }) =>
      file === null ? [] : [`[${title}](${file}): ${page.purpose}`],
    ),
  );
}
