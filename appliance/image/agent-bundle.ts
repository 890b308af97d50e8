import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const AGENT_MAIN = fileURLToPath(new URL('../agent/main.ts', import.meta.url));

/** Bundles the agent to one CommonJS file: one read at boot instead of a hundred. */
export async function bundleAgent(): Promise<Buffer> {
  const result = await build({
    entryPoints: [AGENT_MAIN],
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
