import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createLab, type Lab, type ProgramName } from '../../scripts/demo/lab.ts';
import { disposeLab } from './support/end-lab.ts';
import { addHostOs } from './support/host-os.ts';
import { followTranscript } from './support/transcript.ts';

/**
 * The mistakes of a first day and their messages, in fixtures/mistakes.txt. GNT_UPDATE_MISTAKES=1
 * rewrites the file; read the diff before you commit it.
 */
const file = join(import.meta.dirname, '../../fixtures/mistakes.txt');
let lab: Lab;

before(async () => {
  lab = await createLab('gnt-mistakes');
  await lab.startNode();
  await addHostOs(lab, 'words');
  await addHostOs(lab, 'stranger');
  await addHostOs(lab, 'inside');
  const inside = join(lab.paths.osSearchPath[0] ?? '', 'inside/untrusted');
  await mkdir(inside);
  await writeFile(join(inside, 'create'), '#!/bin/sh\n', { mode: 0o755 });
  await addHostOs(lab, 'broken', { create: 'echo no luck; exit 3' });
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

after(() => disposeLab(lab));

test('each mistake is told as it is written down', async (t) => {
  const isRenewed = process.env['GNT_UPDATE_MISTAKES'] !== undefined;
  await followTranscript(t, lab, { file, isRenewed });
});

test('each refusal has the next step', async () => {
  const blocks = (await readFile(file, 'utf8')).split('\n\n');
  const silent = blocks.filter((block) => /^error\[/m.test(block) && !/^hint: /m.test(block));
  assert.deepEqual(silent, []);
});

/** Commands of hints that only read: a list, a help text, or the state of a named object. */
const READING =
  /\bgnt-[a-z]+ (?:[a-z-]+ --help|--help|diagnose|doctor|list(?:-[a-z]+)?|info [a-z0-9]+)(?=[\s.,;:)]|$)/gm;

test('each reading command that a hint names can be pasted', async (t) => {
  const hints = (await readFile(file, 'utf8')).split('\n').filter((l) => l.startsWith('hint: '));
  const commands = new Set(hints.flatMap((hint) => [...hint.matchAll(READING)].map(([m]) => m)));
  assert.ok(commands.size >= 10, `only ${[...commands].join(', ')}`);
  for (const command of commands)
    await t.test(command, async () => {
      const [program = '', ...args] = command.split(' ');
      const { status, stderr } = await lab.run(program as ProgramName, args);
      // The object of `info` may be removed already, which is a valid answer.
      const isAnswered = status === 0 || /^error\[[A-Z]+_NOT_FOUND\]/m.test(stderr);
      assert.ok(isAnswered, `${status}: ${stderr}`);
    });
});
