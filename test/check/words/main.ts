import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { generateMarkdown } from '../../../scripts/docs/generate.ts';
import { readContents } from '../read-contents.ts';
import { loadCommandTree } from './command-tree.ts';
import { findUncheckedBlocks } from './console-blocks.ts';
import { findUnknownCommands } from './find-commands.ts';
import { findStale } from './find-stale.ts';
import { findUndocumentedMetrics, findUnknownNames } from './find-unknown-names.ts';
import { judgePlaces, judgeTotal, listHits, tallyProse, userStrings } from './judge-prose.ts';
import { findLongLines, findLongReadme } from './lengths.ts';
import { findDeadLinks } from './links.ts';
import { addCounts, type ProseCount, rateOf } from './prose.ts';

/**
 * Checks documents, strings and comments. `--list KIND PLACE` prints the banned patterns of a
 * place, such as `--list comments noded/net`.
 */
const projectDir = join(import.meta.dirname, '../../..');
const { values, positionals } = parseArgs({
  options: { list: { type: 'string' } },
  allowPositionals: true,
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const contents = await readContents(projectDir);

if (values.list === undefined) await check();
else for (const hit of listHits(contents, values.list, positionals[0] ?? '')) print(hit);

async function check(): Promise<void> {
  const { documents, strings, comments } = tallyProse(contents);
  const seen = userStrings(strings);
  const problems = [
    ...findStale(contents, await generateMarkdown()),
    ...findUndocumentedMetrics(contents),
    ...judgePlaces('documents', documents),
    ...judgePlaces('strings', seen),
    ...judgePlaces('comments', comments),
    ...judgeTotal([documents, seen]),
    ...findLongLines(contents),
    ...findDeadLinks(contents),
    ...findUnknownCommands(contents, await loadCommandTree()),
    ...findUnknownNames(contents),
    ...findUncheckedBlocks(contents),
    ...findLongReadme(contents),
  ];
  for (const problem of problems) print(`words: ${problem}`);
  const shown: Readonly<Record<string, readonly ProseCount[]>> = {
    'documents and strings': [...documents.values(), ...seen.values()],
    comments: [...comments.values()],
  };
  for (const [kind, counts] of Object.entries(shown))
    print(
      `words: ${kind}: ${rateOf(addCounts(counts)).toFixed(1)} banned patterns per 1,000 words`,
    );
  process.exitCode = problems.length > 0 ? 1 : 0;
}
