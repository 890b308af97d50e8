import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createLab, type Lab, type ProgramName } from '../../scripts/demo/lab.ts';

/**
 * The mistakes of a first day, each with all that is said to it, in fixtures/mistakes.txt: a line
 * `$ COMMAND`, what it prints, and `[STATUS]`. With GNT_UPDATE_MISTAKES=1 the file is written anew,
 * to be read before it is kept.
 */
const file = join(import.meta.dirname, '../../fixtures/mistakes.txt');
let lab: Lab;

before(async () => {
  lab = await createLab('gnt-mistakes');
  await lab.startNode();
  await addOs('words');
  await addOs('stranger');
  await addOs('broken', 'echo no luck; exit 3');
  const bootEnv = 'Name: rescue\nOS:\n  Name: debian-12\n';
  await writeFile(join(lab.paths.root, 'rescue.yaml'), bootEnv);
  const disc = `  IsoFile: disc.iso\n  IsoSha256: ${'f'.repeat(64)}\n`;
  await writeFile(join(lab.paths.root, 'disc.yaml'), `Name: disc\nOS:\n  Name: disc-1\n${disc}`);
  await writeFile(join(lab.paths.root, 'disc.iso'), 'other bytes');
  await writeFile(join(lab.paths.root, 'wrong.yaml'), `${bootEnv}Kernel: /boot/linux\n`);
  const asks = '# ---\n# RightScript Name: asks\n# Inputs:\n#   DB_HOST: {Required: true}\n# ...\n';
  for (const [name, header] of Object.entries({ plain: '', asks }))
    await writeFile(join(lab.paths.root, `${name}.sh`), `#!/bin/sh\n${header}true\n`);
  for (const name of ['words', 'broken'])
    assert.equal((await lab.run('gnt-os', ['trust', name])).status, 0);
});

after(async () => {
  await lab.stopNode();
  const leftovers = await lab.findLeftovers();
  await lab.dispose();
  assert.deepEqual(leftovers, []);
});

/** One whose scripts run on the host. */
async function addOs(name: string, create = 'exit 0'): Promise<void> {
  const folder = join(lab.paths.osSearchPath[0] ?? '', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'ganeti_api_version'), '20\n');
  await writeFile(join(folder, 'parameters.list'), 'owner Whose it is\nkey A key\n');
  for (const script of ['create', 'import', 'export', 'rename', 'verify']) {
    await writeFile(
      join(folder, script),
      `#!/bin/sh\n${script === 'create' ? create : 'exit 0'}\n`,
    );
    await chmod(join(folder, script), 0o755);
  }
}

/** Without what differs from one host, or one second, to the next. */
function plain(text: string): string {
  return (
    text
      .replaceAll(lab.paths.root, '/ROOT')
      .replaceAll(process.cwd(), '/HERE')
      .replaceAll(/^\d\d:\d\d:\d\d /gm, 'hh:mm:ss ')
      .replaceAll(/in \d+\.\d s/g, 'in N s')
      .replaceAll(/this host's \d+/g, "this host's N")
      // Shown of what takes longer than a moment.
      .replaceAll(/^hh:mm:ss fetch-image: .*\n/gm, '')
      .replaceAll(/^.*accelerator tcg.*\n|^.* started \((?:tcg|kvm)\)\n/gm, '')
  );
}

/** The words of a line as a shell would take them; only single quotes are known. */
function wordsOf(line: string): readonly string[] {
  const quoted = line.replaceAll('/ROOT', lab.paths.root).match(/'[^']*'|[^\s']+/g) ?? [];
  return quoted.map((word) => word.replaceAll("'", ''));
}

test('each mistake is told as it is written down', async (t) => {
  const kept = await readFile(file, 'utf8');
  const head = kept.slice(0, kept.indexOf('\n$ ') + 1);
  let seen = head;
  for (const [, line = ''] of kept.matchAll(/^\$ (.*)$/gm)) {
    await t.test(line, async () => {
      const [program, ...words] = wordsOf(line);
      // One of the names in the file.
      const ran = await lab.run(program as ProgramName, words, { input: '', timeoutMs: 60_000 });
      const told = `$ ${line}\n${plain(ran.stdout)}${plain(ran.stderr)}[${ran.status}]\n\n`;
      seen += told;
      if (process.env['GNT_UPDATE_MISTAKES'] === undefined)
        assert.ok(kept.includes(told), `it is told now:\n${told}`);
    });
  }
  if (process.env['GNT_UPDATE_MISTAKES'] !== undefined) await writeFile(file, seen);
  else assert.equal(seen, kept);
});
