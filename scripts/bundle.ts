import { cp, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { bundleAgent, bundleHooks } from '../appliance/image/agent-bundle.ts';

/**
 * Bundles the programs: `node scripts/bundle.ts FOLDER`. One file a daemon, so that it holds only
 * the code that it uses; the commands in pieces, since each loads what it needs. It appears whole:
 * who starts a program meanwhile gets the old bundle or none.
 */
const top = join(import.meta.dirname, '..');
/** Packages with compiled code of their own, which a bundle cannot hold. */
const NATIVE = ['koffi', 'netlink', 'esbuild'];
/** CommonJS packages ask for modules of Node's own by `require`. */
const REQUIRE =
  "import { createRequire as gntCreateRequire } from 'node:module'; const require = gntCreateRequire(import.meta.url);";

/** zod's messages in fifty languages, of which nothing asks for any but its own English. */
const withoutLocales: Plugin = {
  name: 'without-locales',
  setup: (building) => {
    building.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: 'export {};',
    }));
  },
};

/**
 * commander asks for two modules of Node's own that it hardly ever uses: a process has the one
 * anyway, and being asked for it fills in all that it can say of itself; the other is for programs
 * of subcommands, which there are none of. Both cost a command a tenth of its start.
 */
const withoutDetours: Plugin = {
  name: 'without-detours',
  setup: (building) => {
    building.onResolve({ filter: /^node:(process|child_process)$/ }, ({ path, importer }) =>
      importer.includes('/node_modules/commander/') ? { path, namespace: 'detour' } : undefined,
    );
    building.onLoad({ filter: /./, namespace: 'detour' }, ({ path }) => ({
      contents:
        path === 'node:process'
          ? 'module.exports = globalThis.process;'
          : `module.exports = { spawn: (...given) => process.getBuiltinModule('${path}').spawn(...given) };`,
    }));
  },
};

/**
 * An import of Node's HTTP as a module has all that it could offer made, a WebSocket client among
 * it, which costs a command a twentieth of its start. As what `require` gives it has not.
 */
const withoutFacades: Plugin = {
  name: 'without-facades',
  setup: (building) => {
    building.onResolve({ filter: /^node:http$/ }, ({ path }) => ({ path, namespace: 'facade' }));
    building.onLoad({ filter: /./, namespace: 'facade' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('${path}');`,
    }));
  },
};

const target = resolve(process.argv[2] ?? join(top, 'node_modules/.cache/gnt-programs'));
const made = `${target}.${process.pid}`;
try {
  await makeBundles(made);
  await rm(target, { recursive: true, force: true });
  await mkdir(dirname(target), { recursive: true });
  await rename(made, target);
} finally {
  await rm(made, { recursive: true, force: true });
}

async function makeBundles(folder: string): Promise<void> {
  // Before anything is read: a source that changes meanwhile is newer than this.
  await mkdir(join(folder, 'appliance'), { recursive: true });
  await writeFile(join(folder, 'made'), '');
  const programs = ['noded/main', 'metad/main', 'appliance/main'];
  for (const file of [...programs, 'appliance/judge-hooks', 'noded/read-catalogue']) {
    await bundle(file, folder, false);
  }
  await bundle('cluster-cli/main', folder, true);
  await cp(join(top, 'metad/guest'), join(folder, 'metad/guest'), { recursive: true });
  await writeFile(join(folder, 'appliance/agent.cjs'), await bundleAgent());
  await writeFile(join(folder, 'appliance/hooks.cjs'), await bundleHooks());
}

async function bundle(file: string, folder: string, splitting: boolean): Promise<void> {
  const options: BuildOptions = {
    entryPoints: [join(top, `${file}.ts`)],
    outdir: join(folder, dirname(file)),
    splitting,
    external: NATIVE,
    plugins: [withoutLocales, withoutDetours, ...(splitting ? [withoutFacades] : [])],
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Told by the name: Node need not look into each piece to know what it is.
    outExtension: { '.js': '.mjs' },
    target: 'node26',
    banner: { js: REQUIRE },
    legalComments: 'none',
    logLevel: 'warning',
  };
  await build(options);
}
