import { programFile } from '#shared/paths/program-file.ts';

/**
 * Returns the command of another program of the product, without its own options. It runs on the
 * same Node.js.
 */
export function programCommand(
  program: 'metad' | 'appliance' | 'cluster-cli',
): readonly [command: string, ...args: string[]] {
  return [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    programFile(`${program}/main`),
  ];
}
