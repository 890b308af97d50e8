import { makeParent, ROOT_FILE } from './content-actions.ts';
import type { RootFiles } from './root-files.ts';

const MODULES_FILE = '/etc/modules-load.d/gnt-hooks.conf';
const OPTIONS_FILE = '/etc/modprobe.d/gnt-hooks.conf';
/** The same path as yip's. */
const TIMESYNCD_FILE = '/etc/systemd/timesyncd.conf.d/10-yip.conf';

/** Lists modules and their parameters for the boot of the instance's own kernel. */
export async function setModules(files: RootFiles, modules: readonly string[]): Promise<void> {
  const words = modules.map((module) => module.trim().split(/\s+/));
  await addLines(
    files,
    MODULES_FILE,
    words.map(([name = '']) => name),
  );
  const withParameters = words.filter(({ length }) => length > 1);
  await addLines(
    files,
    OPTIONS_FILE,
    withParameters.map((parts) => `options ${parts.join(' ')}`),
  );
}

export async function setTimesyncd(
  files: RootFiles,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const keys = Object.keys(settings);
  if (keys.length === 0) return;
  makeParent(files, TIMESYNCD_FILE, ROOT_FILE);
  await files.edit(
    TIMESYNCD_FILE,
    (text) => {
      const kept = text
        .split('\n')
        .filter((line) => /^\w/.test(line) && !keys.includes(line.split('=')[0]?.trim() ?? ''));
      const added = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
      return ['[Time]', ...kept, ...added, ''].join('\n');
    },
    ROOT_FILE,
  );
}

async function addLines(files: RootFiles, path: string, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return;
  makeParent(files, path, ROOT_FILE);
  await files.edit(
    path,
    (text) => {
      const present = text.split('\n').filter((line) => line !== '');
      return [...new Set([...present, ...lines]), ''].join('\n');
    },
    ROOT_FILE,
  );
}
