import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { errorCodes } from '#shared/errors/codes.ts';
import { run } from '#shared/process/run.ts';
import { generateClientSchema } from '../../../scripts/docs/client-schema.ts';
import { generateManPages, generateMarkdown } from '../../../scripts/docs/generate.ts';

test('mandoc reports no fault in any manual page', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-man-'));
  t.after(() => rm(folder, { recursive: true }));
  const pages = await generateManPages('2026-01-02');
  for (const [name, text] of pages) await writeFile(join(folder, name), text);
  const { stdout } = await run('mandoc', ['-Tlint', '-Wstyle', ...pages.keys()], { cwd: folder });
  assert.equal(stdout, '');
});

test('every manual page to which another page refers exists', async () => {
  const pages = await generateManPages('2026-01-02');
  const missing = [...pages].flatMap(([from, text]) =>
    [...text.matchAll(/^\.BR (\S+) \((\d)\)/gm)]
      .map(([, name = '', section = '']) => `${name.replaceAll('\\-', '-')}.${section}`)
      .filter((to) => !pages.has(to))
      .map((to) => `${from}: ${to}`),
  );
  assert.deepEqual(missing, []);
});

test('every error code has an entry, and the subcommand launch has a section', async () => {
  const files = await generateMarkdown();
  const codes = files.get('error-codes.md') ?? '';
  for (const code of Object.keys(errorCodes)) assert.ok(codes.includes(`\n- \`${code}\`: `), code);
  assert.match(files.get('commands/gnt-instance.md') ?? '', /^## gnt-instance launch$/m);
});

test('the reference is what the generator writes', async () => {
  for (const [name, text] of await generateMarkdown())
    assert.equal(await readFile(join('docs/reference', name), 'utf8'), text, name);
});

test('the types of the client are what the generator writes', async () => {
  assert.equal(await readFile('client/schema.ts', 'utf8'), await generateClientSchema());
});
