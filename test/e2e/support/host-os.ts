import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab } from '../../../scripts/demo/lab.ts';

const SCRIPTS = ['create', 'import', 'export', 'rename', 'verify'] as const;

/**
 * An OS definition whose scripts run on the host, when it is trusted; what is not said does
 * nothing.
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
