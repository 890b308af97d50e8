import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createLab } from '../../../scripts/demo/lab.ts';
import { median, privateBytes, residentBytes, type Report } from '../support/measurement.ts';

const ROUNDS = 31;
const BIN = join(import.meta.dirname, '../../../node_modules/.bin');
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  'gnt-instance --version': ['gnt-instance', '--version'],
  'gnt-instance --help': ['gnt-instance', '--help'],
  'gnt-instance list': ['gnt-instance', 'list'],
  'gnt-instance info --all': ['gnt-instance', 'info', '--all'],
  'gnt-node list': ['gnt-node', 'list'],
  'a TAB for a command': ['gnt-instance', 'completion-words', '--plain', '--', 'li'],
  'a TAB for a name': ['gnt-instance', 'completion-words', '--plain', '--', 'info', 'w'],
};

/**
 * Measures commands relative to an empty Node program, in alternation, and the memory of an idle
 * daemon.
 */
export async function measure(report: Report): Promise<void> {
  const lab = await createLab('gnt-bench');
  try {
    await lab.startNode();
    const env = { ...process.env, GNT_ROOT: lab.paths.root };
    const time = ([program = '', ...args]: readonly string[]): number => {
      const startedAt = performance.now();
      const { status } = spawnSync(join(BIN, program), args, { env, stdio: 'ignore' });
      if (status !== 0) throw new Error(`${program} ${args.join(' ')}: status ${status}`);
      return performance.now() - startedAt;
    };
    const rounds = Array.from({ length: ROUNDS }, () => ({
      base: time(['node', '-e', '0']),
      times: Object.values(COMMANDS).map(time),
    }));
    // The first round fills V8's code cache.
    const counted = rounds.slice(1);
    const value = median(counted.map(({ base }) => base));
    for (const [at, name] of Object.keys(COMMANDS).entries()) {
      const ratio = median(counted.map(({ base, times }) => (times[at] ?? Number.NaN) / base));
      report({
        ...{ name, unit: 'ms', value: ratio * value },
        compared_with: { name: 'node -e 0', value },
      });
    }
    const pid = lab.node().pid ?? 0;
    for (const [name, value] of [
      ['gnt-noded idle, resident', await residentBytes(pid)],
      ['gnt-noded idle, resident and private', await privateBytes(pid)],
    ] as const)
      report({ name, unit: 'MiB', value: value / 2 ** 20, compared_with: null });
  } finally {
    await lab.dispose();
  }
}
