import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Some tens of states of this project. */
const KEPT = 30_000;

/** Which contents a tool found nothing wrong with, by their keys. */
export interface PassedKeys {
  has(key: string): boolean;
  /** These and the newest of those before. */
  add(keys: readonly string[]): Promise<void>;
}

/** @param path outside the checkout, so that a new one knows them, too: one key a line */
export async function openPassedKeys(path: string): Promise<PassedKeys> {
  // Without it everything is looked at.
  const text = await readFile(path, 'utf8').catch(() => '');
  const passed = new Set(text.split('\n').filter((line) => line !== ''));
  return {
    has: (key) => passed.has(key),
    add: async (keys) => {
      const kept = [...new Set([...keys, ...passed])].slice(0, KEPT);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(`${path}.${process.pid}`, `${kept.join('\n')}\n`);
      await rename(`${path}.${process.pid}`, path);
    },
  };
}
