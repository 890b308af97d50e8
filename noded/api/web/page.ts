import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import type { Context } from 'koa';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { installDir } from '#shared/paths/install-dir.ts';

const decompress = promisify(brotliDecompress);

/** The bundle of an installed package, and that of a checkout. */
const FOLDERS = ['programs/web', 'node_modules/.cache/gnt-programs/web'];

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
]);
/** Suffix of files that the build has compressed. */
const BROTLI = '.br';
/** The bundler's names, which change with the content. */
const HASHED = /-[A-Z0-9]{8}\.[a-z]+$/;
const INDEX = '/index.html';
const NOT_BUILT = `<!doctype html><title>gnt</title>
<p>The web page is not built. Run <code>sh scripts/setup.sh</code> in the checkout, then open the page again.</p>
`;

interface PageFile {
  readonly type: string;
  readonly tag: string;
  readonly isHashed: boolean;
  readonly plain: Buffer;
  readonly brotli: Buffer | null;
}
/** The files of the built page by their path. */
export type Page = ReadonlyMap<string, PageFile>;

/** Reads the built page into memory. */
export async function loadPage(): Promise<Page> {
  for (const folder of FOLDERS) {
    const page = await loadFolder(join(installDir, folder));
    if (page.has(INDEX)) return page;
  }
  return new Map([[INDEX, describeFile('index.html', Buffer.from(NOT_BUILT), null)]]);
}

export async function loadFolder(folder: string): Promise<Page> {
  const page = new Map<string, PageFile>();
  for (const file of await listFiles(folder)) {
    const content = await readFile(join(folder, file));
    const isBrotli = file.endsWith(BROTLI);
    const name = isBrotli ? file.slice(0, -BROTLI.length) : file;
    if (!TYPES.has(extname(name))) continue;
    const plain = isBrotli ? await decompress(content) : content;
    page.set(`/${name}`, describeFile(name, plain, isBrotli ? content : null));
  }
  return page;
}

async function listFiles(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

function describeFile(name: string, plain: Buffer, brotli: Buffer | null): PageFile {
  return {
    type: TYPES.get(extname(name)) ?? 'application/octet-stream',
    tag: createHash('sha256').update(plain).digest('base64url').slice(0, 22),
    isHashed: HASHED.test(name),
    plain,
    brotli,
  };
}

/**
 * Answers with a file of the page. Other paths are places in the page, also those with a dot,
 * such as `/instances/web1.example.com`.
 * @returns false if there is no such file
 */
export function servePage(context: Context, page: Page): boolean {
  const isPlace = extname(context.path) === '' || context.path.lastIndexOf('/') > 0;
  const file = page.get(isPlace ? INDEX : context.path);
  if (file === undefined) return false;
  // Browsers accept Brotli where the network is slow: over TLS.
  const brotli = context.acceptsEncodings('br', 'identity') === 'br' ? file.brotli : null;
  // A browser may show a stored document again after a logout.
  const fresh = isPlace ? 'no-store' : 'no-cache';
  context.set('Cache-Control', file.isHashed ? 'public, max-age=31536000, immutable' : fresh);
  context.set('Vary', 'Accept-Encoding');
  context.set('ETag', `"${file.tag}${brotli === null ? '' : '-br'}"`);
  context.type = file.type;
  context.status = 200;
  if (context.fresh) {
    context.status = 304;
    return true;
  }
  if (brotli !== null) context.set('Content-Encoding', 'br');
  context.body = brotli ?? file.plain;
  return true;
}
