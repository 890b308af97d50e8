import { extname, join } from 'node:path';

const { dirname, filename } = import.meta;

/**
 * How another program of the product is run, up to its own options: by the Node that runs this one,
 * from beside it; bundled as this one is, or from its sources.
 */
export function programCommand(
  program: 'metad' | 'appliance' | 'cluster-cli',
): readonly [command: string, ...args: string[]] {
  const main = join(dirname, '..', program, `main${extname(filename)}`);
  return [process.execPath, '--disable-warning=ExperimentalWarning', main];
}
