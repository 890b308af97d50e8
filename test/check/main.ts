import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { constants, copyFile, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Contents, keysOfClosures, keysOfFiles } from './content-keys.ts';
import { openPassedKeys } from './passed-keys.ts';
import { readContents } from './read-contents.ts';

/**
 * `npm run check`: formatting, linters, types, layers, dead code and words. Exits with the status
 * of the first tool that fails. A linter skips files that passed before and have not changed, nor
 * their imports. The cache of passed files is next to the other caches.
 */
const projectDir = join(import.meta.dirname, '../..');
const cache = join(process.env['GNT_CACHE'] ?? join(homedir(), '.cache/gnt'), 'checked');
const bin = join(projectDir, 'node_modules/.bin');
const PROGRAMS = [
  ...['metad', 'noded', 'appliance', 'cluster-cli', 'client', 'web'],
  ...['shared', 'scripts', 'test'],
];
/** Settings and versions, which affect the linters besides the files. */
const SETTINGS =
  /^(?:package(?:-lock)?\.json|(?:(?:test\/)?web\/)?tsconfig\.json|eslint\.config\.js|\.prettierrc\.json|\.prettierignore)$/;
const FORMATTED = /\.(?:[cm]?[jt]sx?|json|ya?ml|html|css)$/;

const contents = await readContents(projectDir);
const basis = [...contents].flatMap(([path, text]) => (SETTINGS.test(path) ? [text] : []));
const programs = only((path) => /\.(?:tsx?|[cm]?js)$/.test(path));
const said = [process.version, ...basis].join('\n');

await lint(
  'prettier',
  keysOfFiles(
    only((path) => FORMATTED.test(path)),
    said,
  ),
  [...['--check', '--log-level', 'warn']],
);
await lint('eslint', keysOfClosures(programs, said), ['--no-warn-ignored']);
await compile('.', 'tsc.tsbuildinfo');
await compile('web', 'tsc-web.tsbuildinfo');
await compile('test/web', 'tsc-test-web.tsbuildinfo');
await must('depcruise', [...['--config', '.dependency-cruiser.cjs', '--no-progress', ...PROGRAMS]]);
await must('knip', []);
await checkWords();

function only(isWanted: (path: string) => boolean): Contents {
  return new Map([...contents].filter(([path]) => isWanted(path)));
}

/** Runs a linter on the files that have not passed yet. */
async function lint(
  tool: string,
  keys: ReadonlyMap<string, string>,
  options: readonly string[],
): Promise<void> {
  const passed = await openPassedKeys(join(cache, tool));
  const files = [...keys].flatMap(([path, key]) => (passed.has(key) ? [] : [path]));
  if (files.length > 0) await must(tool, [...options, ...files]);
  await passed.add([...keys.values()]);
}

/**
 * Checks documents, strings, comments and the generated reference. A finding may depend on any two
 * files, so one key stands for all files.
 */
async function checkWords(): Promise<void> {
  const read = only((path) => /\.(?:tsx?|sh|md)$/.test(path));
  const key = [...keysOfFiles(read, said).values()].join('\n');
  const passed = await openPassedKeys(join(cache, 'words'));
  const digest = createHash('sha256').update(key).digest('hex');
  if (passed.has(digest)) return;
  await mustRun(process.execPath, [join(import.meta.dirname, 'words/main.ts')]);
  await passed.add([digest]);
}

/**
 * Runs the compiler, for the programs or the page. It caches its results by content, and shares
 * the cache between checkouts.
 */
async function compile(project: string, cacheName: string): Promise<void> {
  const info = join(projectDir, 'node_modules/.cache', cacheName);
  const kept = join(cache, cacheName);
  await mkdir(join(projectDir, 'node_modules/.cache'), { recursive: true });
  // A checkout with its own cache keeps it. Without any cache, tsc checks everything.
  await copyFile(kept, info, constants.COPYFILE_EXCL).catch(() => undefined);
  await must('tsc', ['-p', project, '--noEmit', '--incremental', '--tsBuildInfoFile', info]);
  await copyFile(info, kept);
}

async function must(tool: string, args: readonly string[]): Promise<void> {
  await mustRun(join(bin, tool), args);
}

async function mustRun(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { cwd: projectDir, stdio: 'inherit' });
  // The type follows Node's documentation of the event.
  const [status] = (await once(child, 'close')) as [number | null];
  if (status !== 0) process.exit(status ?? 1);
}
