import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { TestContext } from 'node:test';
import type { Lab, ProgramName } from '../../../scripts/demo/lab.ts';

const COMMAND_TIMEOUT_MS = 60_000;

interface Transcript {
  /**
   * A line `$ COMMAND`, its output, and `[STATUS]`. Text before the first command is for readers.
   */
  readonly file: string;
  /** Rewrites the file; read the diff before you commit it. */
  readonly isRenewed: boolean;
  /** Removes values that depend on the host or the time, in addition to `plain`. */
  readonly normalise?: (text: string) => string;
}

/** Runs each command of a file and compares its output, as a subtest for each. */
export async function followTranscript(
  t: TestContext,
  lab: Lab,
  { file, isRenewed, normalise = (text) => text }: Transcript,
): Promise<void> {
  const kept = await readFile(file, 'utf8');
  let seen = kept.slice(0, kept.indexOf('\n$ ') + 1);
  for (const [, line = ''] of kept.matchAll(/^\$ (.*)$/gm)) {
    await t.test(line, async () => {
      const [program, ...words] = wordsOf(line, lab);
      // One of the names in the file.
      const ran = await lab.run(program as ProgramName, words, {
        ...{ input: '', timeoutMs: COMMAND_TIMEOUT_MS },
      });
      const printed = normalise(plain(ran.stdout, lab) + plain(ran.stderr, lab));
      const told = `$ ${line}\n${printed}[${ran.status}]\n\n`;
      seen += told;
      if (!isRenewed) assert.ok(kept.includes(told), `the text now:\n${told}`);
    });
  }
  if (isRenewed) await writeFile(file, seen);
  else assert.equal(seen, kept, basename(file));
}

function plain(text: string, lab: Lab): string {
  return (
    text
      .replaceAll(lab.paths.root, '/ROOT')
      .replaceAll(process.cwd(), '/HERE')
      .replaceAll(/^\d\d:\d\d:\d\d /gm, 'hh:mm:ss ')
      .replaceAll(/in \d+\.\d s/g, 'in N s')
      .replaceAll(/this host's \d+/g, "this host's N")
      .replaceAll(/this node can run \(\d+M\)/g, 'this node can run (NM)')
      .replaceAll(/^hint: Give less: -B memory=\d+M/gm, 'hint: Give less: -B memory=NM')
      // Only shown if it takes longer than a moment.
      .replaceAll(/^hh:mm:ss fetch-image: .*\n/gm, '')
      .replaceAll(/^.*accelerator tcg.*\n|^.* started \((?:tcg|kvm)\)\n/gm, '')
  );
}

/** Splits a line into words as a shell does, with single quotes only. */
function wordsOf(line: string, lab: Lab): readonly string[] {
  const quoted = line.replaceAll('/ROOT', lab.paths.root).match(/'[^']*'|[^\s']+/g) ?? [];
  return quoted.map((word) => word.replaceAll("'", ''));
}
