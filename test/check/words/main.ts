import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { generateMarkdown } from '../../../scripts/docs/generate.ts';
import { readContents } from '../read-contents.ts';
import { loadCommandTree } from './command-tree.ts';
import { findUncheckedBlocks } from './console-blocks.ts';
import { exempt } from './exempt.ts';
import { findUnknownCommands } from './find-commands.ts';
import { findStale } from './find-stale.ts';
import { findUndocumentedMetrics, findUnknownNames } from './find-unknown-names.ts';
import { judgePlaces, judgeTotal, listHits, tallyProse, userStrings } from './judge-prose.ts';
import { findLongLines, findLongReadme } from './lengths.ts';
import { findDeadLinks } from './links.ts';
import { addCounts, type ProseCount, rateOf } from './prose.ts';
import { renderExempt, shrinkExempt, withoutExempt } from './shrink-exempt.ts';

/**
 * Checks documents, strings and comments. `--list KIND PLACE` prints the banned patterns of a
 * place, such as `--list comments noded/net`; `--shrink` removes unneeded exemptions.
 */
const projectDir = join(import.meta.dirname, '../../..');
const { values, positionals } = parseArgs({
  options: { list: { type: 'string' }, shrink: { type: 'boolean' } },
  allowPositionals: true,
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const contents = await readContents(projectDir);

if (values.list === undefined) await check();
else for (const hit of listHits(contents, values.list, positionals[0] ?? '')) print(hit);

async function check(): Promise<void> {
  const { documents, strings, comments } = tallyProse(contents);
  const seen = userStrings(strings);
  const perDocument = {
    longLines: findLongLines(contents),
    links: byDocument(findDeadLinks(contents)),
    commands: byDocument(findUnknownCommands(contents, await loadCommandTree())),
    names: byDocument(findUnknownNames(contents)),
    consoleBlocks: byDocument(findUncheckedBlocks(contents)),
    readme: byDocument(findLongReadme(contents)),
  };
  const places = { documents, strings: seen, comments };
  if (values.shrink === true) {
    const path = join(import.meta.dirname, 'exempt.ts');
    await writeFile(path, renderExempt(shrinkExempt(exempt, places, perDocument)));
    return;
  }
  const problems = [
    ...findStale(contents, await generateMarkdown()),
    ...findUndocumentedMetrics(contents),
    ...judgePlaces('documents', documents, exempt.documents),
    ...judgePlaces('strings', seen, exempt.strings),
    ...judgePlaces('comments', comments, exempt.comments),
    ...judgeTotal([
      [documents, exempt.documents],
      [seen, exempt.strings],
    ]),
    ...Object.entries(perDocument).flatMap(([kind, found]) =>
      // The keys of perDocument.
      withoutExempt(kind, found, exempt[kind as keyof typeof perDocument]),
    ),
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
  const left = Object.values(exempt).reduce((sum, list) => sum + list.length, 0);
  if (left > 0) print(`words: ${left} exemptions are left in test/check/words/exempt.ts`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}

/** Groups findings by the document name at their start. */
function byDocument(findings: readonly string[]): ReadonlyMap<string, string> {
  const grouped = Map.groupBy(findings, (finding) => finding.split(':')[0] ?? '');
  return new Map([...grouped].map(([path, found]) => [path, found.join('\nwords: ')]));
}
