import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { build } from 'esbuild';

const source = join(import.meta.dirname, '../web');
/** Browsers of the last two years. */
const TARGET = 'es2022';
const compressBrotli = promisify(brotliCompress);

/**
 * Bundles the web page into a folder. The names of scripts and styles contain a hash of their
 * content. Every file is also there compressed.
 */
export async function bundlePage(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const { metafile } = await build({
    entryPoints: [join(source, 'main.tsx'), join(source, 'style.css')],
    outdir: folder,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: TARGET,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    minify: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const nameOf = (entry: string): string => {
    const found = Object.entries(metafile.outputs).find(
      ([, { entryPoint }]) => entryPoint?.endsWith(`web/${entry}`) === true,
    );
    if (found === undefined) throw new Error(`the bundle has no ${entry}`);
    return basename(found[0]);
  };
  const index = await readFile(join(source, 'index.html'), 'utf8');
  await writeFile(
    join(folder, 'index.html'),
    index.replace('SCRIPT', nameOf('main.tsx')).replace('STYLE', nameOf('style.css')),
  );
  await writeFile(join(folder, 'icon.svg'), await readFile(join(source, 'icon.svg')));
  for (const name of await readdir(folder)) await compress(join(folder, name));
}

/** Replaces a file by its compressed form. gnt-noded reads both. */
async function compress(path: string): Promise<void> {
  const content = await readFile(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  await writeFile(`${path}.br`, await compressBrotli(content, { params }));
  await rm(path);
}
