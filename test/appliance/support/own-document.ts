import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const DOCUMENT = join(import.meta.dirname, '../../../docs/howto/own-appliance.md');

/** Reads the files in the document on self-made appliances, by the name behind their fence. */
export async function readOwnDocument(): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(DOCUMENT, 'utf8');
  const fences = text.matchAll(/^```sh (\S+)\n(.*?)^```$/gms);
  const files = new Map([...fences].map(([, name = '', content = '']) => [name, content] as const));
  assert.deepEqual([...files.keys()].sort(), ['init', 'lease', 'make-appliance']);
  return files;
}
