import { join } from 'node:path';

const projectDir = join(import.meta.dirname, '..');

/**
 * How another program of the product is run, up to its own options: by the Node that runs this one,
 * from beside it.
 */
export function programCommand(
  program: 'metad' | 'appliance' | 'cluster-cli',
): readonly [command: string, ...args: string[]] {
  const main = join(projectDir, program, 'main.ts');
  return [process.execPath, '--disable-warning=ExperimentalWarning', main];
}
