import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const AGENT_MAIN = fileURLToPath(new URL('../agent/main.ts', import.meta.url));
const HOOKS_MAIN = fileURLToPath(new URL('../agent/hooks/main.ts', import.meta.url));

/**
 * What the agent has already, and gives to the hooks' bundle when it loads it
 * (appliance/agent/load-hooks.ts).
 */
const SHARED_WITH_AGENT = ['zod', '#shared/errors/app-error.ts'];

/** Bundles the agent to one CommonJS file: one read at boot instead of a hundred. */
export function bundleAgent(): Promise<Buffer> {
  return bundle(AGENT_MAIN, []);
}

/** Bundles what reads and runs hooks, which is loaded only when there are some. */
export function bundleHooks(): Promise<Buffer> {
  return bundle(HOOKS_MAIN, SHARED_WITH_AGENT);
}

async function bundle(entryPoint: string, external: string[]): Promise<Buffer> {
  const result = await build({
    entryPoints: [entryPoint],
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
  if (!output) throw new Error('the bundler wrote nothing');
  return Buffer.from(output.contents);
}
