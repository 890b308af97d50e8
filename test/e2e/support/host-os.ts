import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab } from '../../../scripts/demo/lab.ts';

const SCRIPTS = ['create', 'import', 'export', 'rename', 'verify'] as const;

/**
 * Adds an OS definition whose scripts run on the host when it is trusted. Scripts that are not
 * given do nothing.
 */
export async function addHostOs(
  lab: Lab,
  name: string,
  scripts: Readonly<Partial<Record<(typeof SCRIPTS)[number], string>>> = {},
): Promise<void> {
  const folder = join(lab.paths.osSearchPath[0] ?? '', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'ganeti_api_version'), '20\n');
  await writeFile(join(folder, 'parameters.list'), 'owner Whose it is\nkey A key\n');
  for (const script of SCRIPTS) {
    await writeFile(join(folder, script), `#!/bin/sh\n${scripts[script] ?? 'exit 0'}\n`);
    await chmod(join(folder, script), 0o755);
  }
}
