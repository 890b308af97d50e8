import { programFile } from '#shared/paths/program-file.ts';

/**
 * How another program of the product is run, up to its own options: by the Node that runs this one.
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
