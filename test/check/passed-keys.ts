import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Keys of a few dozen states of this project. */
const KEPT = 30_000;

/** Keys of the contents that a tool passed. */
export interface PassedKeys {
  has(key: string): boolean;
  /** Stores these keys and the newest older ones. */
  add(keys: readonly string[]): Promise<void>;
}

/** @param path outside the checkout, so that new checkouts share it; one key per line */
export async function openPassedKeys(path: string): Promise<PassedKeys> {
  // Without the file, everything is checked.
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
