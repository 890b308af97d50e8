import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Context } from 'koa';
import { systemCodeOf } from '#shared/errors/app-error.ts';
import { installDir } from '#shared/paths/install-dir.ts';

/** The bundle of an installed package, and that of a checkout. */
const FOLDERS = ['programs/web', 'node_modules/.cache/gnt-programs/web'];

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png'],
]);
/** Encodings by the suffix of a precompressed file, the preferred first. */
const ENCODINGS = { br: '.br', gzip: '.gz' } as const;
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
  readonly encoded: { readonly [Encoding in keyof typeof ENCODINGS]?: Buffer };
}
/** The files of the built page by their path. */
export type Page = ReadonlyMap<string, PageFile>;

/** Reads the built page into memory. */
export async function loadPage(): Promise<Page> {
  for (const folder of FOLDERS) {
    const page = await loadFolder(join(installDir, folder));
    if (page.has(INDEX)) return page;
  }
  return new Map([[INDEX, describeFile('index.html', new Map(), Buffer.from(NOT_BUILT))]]);
}

export async function loadFolder(folder: string): Promise<Page> {
  const found = new Map<string, Buffer>();
  for (const name of await listFiles(folder)) found.set(name, await readFile(join(folder, name)));
  const page = new Map<string, PageFile>();
  for (const [name, plain] of found)
    if (TYPES.has(extname(name))) page.set(`/${name}`, describeFile(name, found, plain));
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

function describeFile(name: string, all: ReadonlyMap<string, Buffer>, plain: Buffer): PageFile {
  const br = all.get(`${name}${ENCODINGS.br}`);
  const gzip = all.get(`${name}${ENCODINGS.gzip}`);
  return {
    type: TYPES.get(extname(name)) ?? 'application/octet-stream',
    tag: createHash('sha256').update(plain).digest('base64url').slice(0, 22),
    isHashed: HASHED.test(name),
    plain,
    encoded: { ...(br && { br }), ...(gzip && { gzip }) },
  };
}

/**
 * Answers with a file of the page. Paths without an extension are places in the page.
 * @returns false if there is no such file
 */
export function servePage(context: Context, page: Page): boolean {
  const isPlace = extname(context.path) === '';
  const file = page.get(isPlace ? INDEX : context.path);
  if (file === undefined) return false;
  const encoding = context.acceptsEncodings('br', 'gzip', 'identity') || 'identity';
  const encoded = encoding === 'br' || encoding === 'gzip' ? file.encoded[encoding] : undefined;
  context.set('Cache-Control', file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache');
  context.set('Vary', 'Accept-Encoding');
  context.set('ETag', `"${file.tag}${encoded === undefined ? '' : `-${encoding}`}"`);
  context.type = file.type;
  context.status = 200;
  if (context.fresh) {
    context.status = 304;
    return true;
  }
  if (encoded !== undefined) context.set('Content-Encoding', encoding);
  context.body = encoded ?? file.plain;
  return true;
}
