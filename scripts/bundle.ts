import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type BuildOptions, build, type Plugin, transform } from 'esbuild';
import { renderHelp } from '../cluster-cli/create-command.ts';
import { isProgramName, programs } from '../cluster-cli/programs.ts';
import { DEFAULT_COLUMNS } from '../cluster-cli/terminal/terminal.ts';
import { bundleAgent, bundleHooks } from '../appliance/image/agent-bundle.ts';
import { bundlePage } from './bundle-page.ts';

/**
 * Bundles the programs: `node scripts/bundle.ts FOLDER`. Each daemon is one file, so that it holds
 * only the code that it uses. Commands are pieces, since each loads only some. The folder appears
 * atomically: a program that starts meanwhile gets the old bundle or none.
 */
const top = join(import.meta.dirname, '..');
/** Packages with native code, which a bundle cannot hold. */
const NATIVE = ['koffi', 'netlink', 'esbuild'];
const TARGET = 'node26';
/** CommonJS packages load Node's modules by `require`. */
const REQUIRE =
  "import { createRequire as gntCreateRequire } from 'node:module'; const require = gntCreateRequire(import.meta.url);";

/** Drops zod's messages in other languages than its default English. */
const withoutLocales: Plugin = {
  name: 'without-locales',
  setup: (building) => {
    building.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: 'export {};',
    }));
  },
};

/** Types that Koa sends or recognizes by a short name. */
const MEDIA_TYPES = ['json', 'txt', 'html', 'bin'];
/** Keeps the needed ones of 2,500 media types, which a daemon would hold twice. */
const withoutMediaTypes: Plugin = {
  name: 'without-media-types',
  setup: (building) => {
    building.onLoad({ filter: /\/mime-db\/db\.json$/ }, async ({ path }) => {
      // The package's own table.
      const all = JSON.parse(await readFile(path, 'utf8')) as Record<string, MediaType>;
      const kept = Object.entries(all).filter(([, { extensions = [] }]) =>
        MEDIA_TYPES.some((name) => extensions.includes(name)),
      );
      return { contents: JSON.stringify(Object.fromEntries(kept)), loader: 'json' };
    });
  },
};
interface MediaType {
  readonly extensions?: readonly string[];
}

/**
 * Replaces two modules of Node that commander hardly uses: `process`, whose import fills in all its
 * exports, and one for executable subcommands, which no program has. Both cost a command a tenth of
 * its start.
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

/** Identifies the sources of a bundle, to tell programs of different bundles apart. */
const buildId = await hashSources(['cluster-cli', 'noded', 'shared', 'package-lock.json']);
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
  // Written before any source is read, so that a later change of a source is newer.
  await mkdir(join(folder, 'appliance'), { recursive: true });
  await writeFile(join(folder, 'made'), '');
  // A quarter less to load and to install. Names stay for traces. Node prints the whole line that
  // throws, so that lines are bounded.
  const minified = { minifyWhitespace: true, lineLimit: 120 };
  for (const file of [
    'noded/main',
    'metad/main',
    'appliance/main',
    'appliance/judge-hooks',
    'noded/content/catalogue/read-catalogue',
  ])
    await bundle(file, folder, minified);
  await bundle('cluster-cli/main', folder, { splitting: true });
  await toCommonJs(join(folder, 'cluster-cli'));
  await writeHelp(join(folder, 'cluster-cli/help'));
  await cp(join(top, 'metad/guest'), join(folder, 'metad/guest'), { recursive: true });
  await writeFile(join(folder, 'appliance/agent.cjs'), await bundleAgent());
  await writeFile(join(folder, 'appliance/hooks.cjs'), await bundleHooks());
  await bundlePage(join(folder, 'web'));
}

async function bundle(file: string, folder: string, more: BuildOptions = {}): Promise<void> {
  const options: BuildOptions = {
    entryPoints: [join(top, `${file}.ts`)],
    outdir: join(folder, dirname(file)),
    external: NATIVE,
    plugins: [withoutLocales, withoutMediaTypes, withoutDetours],
    bundle: true,
    platform: 'node',
    format: 'esm',
    // The extension saves Node from inspecting each piece for its module format.
    outExtension: { '.js': '.mjs' },
    target: TARGET,
    define: { GNT_BUILD: JSON.stringify(buildId) },
    banner: { js: REQUIRE },
    // Saves a fifteenth of the loading; names stay for traces.
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
    ...more,
  };
  await build(options);
}

/**
 * Converts pieces to CommonJS, which esbuild only makes of ES modules. `require` of a Node module
 * provides the used members, while an import fills in all of them.
 */
async function toCommonJs(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const piece = await readFile(join(folder, name), 'utf8');
    const { code } = await transform(piece.replace(REQUIRE, ''), {
      format: 'cjs',
      platform: 'node',
      target: TARGET,
      // `require` instead finds compiled pieces without the module loader.
      supported: { 'dynamic-import': false },
      define: { 'import.meta.dirname': '__dirname', 'import.meta.url': '__filename' },
      logLevel: 'warning',
    });
    const required = code.replaceAll(/(require\("\.\/[\w-]+)\.mjs"\)/g, '$1.cjs")');
    await writeFile(join(folder, name.replace(/\.mjs$/, '.cjs')), required);
    await rm(join(folder, name));
  }
}

/** Writes the help texts for the launcher: most of the time of `--help` is the start of Node. */
async function writeHelp(folder: string): Promise<void> {
  // The project's own file.
  const { version } = JSON.parse(await readFile(join(top, 'package.json'), 'utf8')) as {
    version: string;
  };
  await mkdir(folder);
  await writeFile(join(folder, 'version'), `${version}\n`);
  for (const program of Object.keys(programs).filter(isProgramName)) {
    const texts = await renderHelp(program, { version, columns: DEFAULT_COLUMNS });
    for (const [name, text] of texts) await writeFile(join(folder, name), text);
  }
}

async function hashSources(paths: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of paths) {
    const entries = path.includes('.')
      ? [path]
      : (await readdir(join(top, path), { recursive: true, withFileTypes: true }))
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name).slice(top.length + 1));
    for (const file of entries.sort()) {
      hash
        .update(`${file}\0`)
        .update(await readFile(join(top, file)))
        .update('\0');
    }
  }
  return hash.digest('hex').slice(0, 16);
}
