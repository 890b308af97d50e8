import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { generateClientSchema } from './client-schema.ts';
import { generateManPages, generateMarkdown } from './generate.ts';

/**
 * Writes docs/reference/ and client/schema.ts for `npm run docs`. `node scripts/docs/main.ts --man
 * FOLDER` writes the manual pages instead, and `--to FOLDER` the reference alone.
 */
const { values } = parseArgs({ options: { man: { type: 'string' }, to: { type: 'string' } } });
const target = resolve(
  values.man ?? values.to ?? join(import.meta.dirname, '../../docs/reference'),
);
const today = new Date().toISOString().slice(0, 10);
const files = values.man === undefined ? await generateMarkdown() : await generateManPages(today);
await rm(target, { recursive: true, force: true });
for (const [name, text] of files) {
  const path = join(target, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
process.stdout.write(`docs: ${files.size} files in ${target}\n`);
if (values.man === undefined && values.to === undefined) {
  const path = join(import.meta.dirname, '../../client/schema.ts');
  await writeFile(path, await generateClientSchema());
}
