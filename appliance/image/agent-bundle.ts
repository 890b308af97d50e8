import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

const { dirname, filename } = import.meta;
/** In a bundle of the programs, the agent's bundles are beside it. */
const isBundled = extname(filename) !== '.ts';

/**
 * Modules that the agent passes to the hooks' bundle when it loads it
 * (appliance/agent/main.ts).
 */
const SHARED_WITH_AGENT = ['zod', '#shared/errors/app-error.ts'];

/** Bundles the agent to one CommonJS file: one read at boot instead of a hundred. */
export function bundleAgent(): Promise<Buffer> {
  if (isBundled) return readFile(join(dirname, 'agent.cjs'));
  return bundle('../agent/main.ts', []);
}

/** Bundles the code for hooks, which is loaded only when there are hooks. */
export function bundleHooks(): Promise<Buffer> {
  if (isBundled) return readFile(join(dirname, 'hooks.cjs'));
  return bundle('../agent/hooks/main.ts', SHARED_WITH_AGENT);
}

async function bundle(main: string, external: string[]): Promise<Buffer> {
  const { build } = await import('esbuild');
  const result = await build({
    entryPoints: [join(dirname, main)],
    external,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node26',
    minify: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
  });
  const [output] = result.outputFiles;
  if (!output) throw new Error('the bundler produced no output');
  return Buffer.from(output.contents);
}
