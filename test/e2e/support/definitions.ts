import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab } from '../../../scripts/demo/lab.ts';

const fixtures = join(import.meta.dirname, '../../../fixtures/os');

/** Adds OS definitions of the fixtures to a node. */
export async function addDefinitions(lab: Lab, ...names: readonly string[]): Promise<void> {
  const [osDir = ''] = lab.paths.osSearchPath;
  await mkdir(osDir, { recursive: true });
  for (const name of names) await cp(join(fixtures, name), join(osDir, name), { recursive: true });
}
