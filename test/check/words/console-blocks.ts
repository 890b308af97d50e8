import { posix } from 'node:path';
import type { Contents } from '../content-keys.ts';
import { type CodeBlock, splitMarkdown } from './markdown.ts';

const PAGES = /^docs\/(?:tutorial|howto)\/.+\.md$/;

/**
 * Finds blocks of commands in tutorials and how-to pages that neither run in a test nor give a
 * reason.
 */
export function findUncheckedBlocks(contents: Contents): readonly string[] {
  const tests = [...contents].filter(([path]) => /^test\/.*\.test\.ts$/.test(path));
  const isRun = (page: string): boolean =>
    tests.some(([, text]) => text.includes(page) || text.includes(`${posix.dirname(page)}/*.md`));
  return [...contents].flatMap(([path, text]) => {
    if (!PAGES.test(path)) return [];
    return splitMarkdown(text).blocks.flatMap((block) => {
      const problem = problemOf(block, () => isRun(path));
      return problem === null ? [] : [`${path}:${block.number}: ${problem}`];
    });
  });
}

function problemOf({ info, lines }: CodeBlock, isRun: () => boolean): string | null {
  const [language, mode] = info.split(/\s+/);
  if (language !== 'console')
    return lines.some(({ text }) => /^[#$] gnt-/.test(text))
      ? "a block of commands needs the info string 'console'"
      : null;
  if (mode === undefined) return isRun() ? null : 'no test runs this page';
  if (mode !== 'no-run') return `'${mode}' is not no-run`;
  return /\breason="[^"]+"$/.test(info) ? null : 'no-run needs a reason="..."';
}
