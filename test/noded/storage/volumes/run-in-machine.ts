import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { type CommandResult, SystemMachine } from '../../../package/system-machine.ts';

/** CommonJS packages load Node's own modules with `require`. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/**
 * Runs a file of tests of this folder as root in an emulated machine.
 * @param how `tree`: the machine's root; `diskBytes`: of its `/dev/vdb`; `before`: a shell script
 */
export async function runInSystemMachine(
  file: string,
  how: { readonly tree: string; readonly diskBytes: number; readonly before: string },
): Promise<CommandResult> {
  const folder = await mkdtemp(join(tmpdir(), 'gnt-volumes-'));
  try {
    const bundle = join(folder, 'in-machine.mjs');
    await build({
      entryPoints: [join(import.meta.dirname, file)],
      ...{ outfile: bundle, bundle: true, platform: 'node', format: 'esm', target: 'node26' },
      ...{ external: ['koffi', 'netlink'], banner: { js: REQUIRE }, logLevel: 'error' },
    });
    const modules = join(import.meta.dirname, '../../../../node_modules');
    await using machine = await SystemMachine.boot({
      tree: how.tree,
      files: {
        'usr/bin/node': process.execPath,
        'root/in-machine.mjs': bundle,
        'root/koffi': join(modules, 'koffi'),
        'root/@koromix': join(modules, '@koromix'),
      },
      moreDiskBytes: [how.diskBytes],
    });
    await machine.run(
      'mkdir /root/node_modules && mv /root/koffi /root/@koromix /root/node_modules',
    );
    await machine.run(how.before);
    return await machine.try('exec node --test-reporter=spec /root/in-machine.mjs', HOUR_MS);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Each command of a volume system takes seconds there. */
const HOUR_MS = 60 * 60_000;
