import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, copyFile, mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { type Contents, keysOfClosures, keysOfFiles } from './content-keys.ts';
import { openPassedKeys } from './passed-keys.ts';

/**
 * `npm run check`: formatting, linters, types, layers and dead code; ends with the status of the
 * first that finds something. What a linter has passed once is not given to it again until it
 * changes, or anything that it imports: what was passed is kept beside the other caches.
 */
const projectDir = join(import.meta.dirname, '../..');
const cache = join(process.env['GNT_CACHE'] ?? join(homedir(), '.cache/gnt'), 'checked');
const bin = join(projectDir, 'node_modules/.bin');
const PROGRAMS = ['metad', 'noded', 'appliance', 'cluster-cli', 'shared', 'scripts', 'test'];
/** What the linters go by besides the files: their settings, and which versions they are of. */
const SETTINGS =
  /^(?:package(?:-lock)?\.json|tsconfig\.json|eslint\.config\.js|\.prettierrc\.json|\.prettierignore)$/;
const FORMATTED = /\.(?:[cm]?[jt]s|json|ya?ml|html|css)$/;

const contents = await readContents();
const basis = [...contents].flatMap(([path, text]) => (SETTINGS.test(path) ? [text] : []));
const programs = only((path) => /\.(?:ts|[cm]?js)$/.test(path));
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
await compile();
await must('depcruise', [...['--config', '.dependency-cruiser.cjs', '--no-progress', ...PROGRAMS]]);
await must('knip', []);

function only(isWanted: (path: string) => boolean): Contents {
  return new Map([...contents].filter(([path]) => isWanted(path)));
}

/** All that git has, and what it does not have yet and does not ignore. */
async function readContents(): Promise<Contents> {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'];
  const { stdout } = await run('git', args, { cwd: projectDir });
  const read = stdout.split('\0').map(async (path) => {
    // Removed, and git was not told yet; a link; a repository of its own.
    const text = await readFile(join(projectDir, path), 'utf8').catch(() => null);
    return text === null ? [] : [[path, text] as const];
  });
  return new Map((await Promise.all(read)).flat());
}

/** A linter that is given files, those alone that it has not passed yet. */
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

/** The compiler keeps what it found of each file by content, where the last checkout left it. */
async function compile(): Promise<void> {
  const info = join(projectDir, 'node_modules/.cache/tsc.tsbuildinfo');
  const kept = join(cache, 'tsc.tsbuildinfo');
  await mkdir(join(projectDir, 'node_modules/.cache'), { recursive: true });
  // A checkout that has its own goes on with it; without any, everything is checked.
  await copyFile(kept, info, constants.COPYFILE_EXCL).catch(() => undefined);
  await must('tsc', ['--noEmit', '--incremental', '--tsBuildInfoFile', info]);
  await copyFile(info, kept);
}

async function must(tool: string, args: readonly string[]): Promise<void> {
  const child = spawn(join(bin, tool), args, { cwd: projectDir, stdio: 'inherit' });
  // The event's arguments, as documented.
  const [status] = (await once(child, 'close')) as [number | null];
  if (status !== 0) process.exit(status ?? 1);
}
