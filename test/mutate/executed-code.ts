import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Runs a test file with these variables of the environment. */
type RunTest = (test: string, env: NodeJS.ProcessEnv) => Promise<unknown>;

/** The executed parts of a file: `[start, end]` offsets of its text, in order. */
interface Executed {
  readonly digest: string;
  readonly parts: readonly (readonly [number, number])[];
}
type ByFile = Readonly<Record<string, Executed>>;

/** One process, as Node.js writes it for `NODE_V8_COVERAGE`. */
interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly Range[] }[];
  }[];
}
interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/**
 * Returns a function that tells whether a test executes the code at an offset of a file, in its own
 * process or in a program that it starts. Each test runs once for that; the answers are kept in
 * `node_modules/.cache` until the file or the test changes.
 */
export function createExecutedCode(projectDir: string, runTest: RunTest) {
  const cache = join(projectDir, 'node_modules/.cache/executed');
  mkdirSync(cache, { recursive: true });
  const digests = new Map<string, string>();
  const digestOf = (file: string): string => {
    const known = digests.get(file) ?? digest(readFileSync(join(projectDir, file), 'utf8'));
    digests.set(file, known);
    return known;
  };
  const measured = new Map<string, Promise<ByFile>>();
  const keptAt = (test: string): string =>
    join(cache, `${digest(`${test} ${digestOf(test)}`)}.json`);
  const measure = async (test: string): Promise<ByFile> => {
    const dir = mkdtempSync(join(tmpdir(), 'gnt-executed-'));
    // Programs under another user write there, too.
    chmodSync(dir, 0o1777);
    await runTest(test, { NODE_V8_COVERAGE: dir });
    const found = readCoverage(dir, projectDir, digestOf);
    rmSync(dir, { recursive: true });
    writeFileSync(keptAt(test), JSON.stringify(found));
    return found;
  };
  const kept = (test: string): ByFile | null => {
    const path = keptAt(test);
    if (!existsSync(path)) return null;
    return JSON.parse(readFileSync(path, 'utf8')) as ByFile;
  };
  return async (test: string, file: string, offset: number): Promise<boolean> => {
    const before = measured.has(test) ? null : kept(test);
    const isFresh = before !== null && (before[file]?.digest ?? digestOf(file)) === digestOf(file);
    const found = isFresh ? before : await (measured.get(test) ?? start(test));
    return found[file]?.parts.some(([first, end]) => first <= offset && offset < end) ?? false;
  };

  function start(test: string): Promise<ByFile> {
    const measuring = measure(test);
    measured.set(test, measuring);
    return measuring;
  }
}

function readCoverage(dir: string, projectDir: string, digestOf: (file: string) => string): ByFile {
  const marks = new Map<string, Uint8Array>();
  for (const name of readdirSync(dir)) {
    const { result } = JSON.parse(readFileSync(join(dir, name), 'utf8')) as Coverage;
    for (const { url, functions } of result) {
      if (!url.startsWith('file://') || url.includes('/node_modules/')) continue;
      const path = fileURLToPath(url);
      if (!path.startsWith(`${projectDir}/`) || !existsSync(path)) continue;
      const file = path.slice(projectDir.length + 1);
      if (file.startsWith('test/')) continue;
      const ranges = functions.flatMap((one) => one.ranges);
      mark(marks, file, ranges);
    }
  }
  return Object.fromEntries(
    [...marks].map(([file, of]) => [file, { digest: digestOf(file), parts: partsOf(of) }]),
  );
}

/** Marks the code that a process executed. The innermost range of a place has its count. */
function mark(marks: Map<string, Uint8Array>, file: string, ranges: readonly Range[]): void {
  const length = Math.max(...ranges.map(({ endOffset }) => endOffset));
  const own = new Uint8Array(length);
  const outerFirst = ranges.toSorted(
    (a, b) => b.endOffset - b.startOffset - (a.endOffset - a.startOffset),
  );
  for (const { startOffset, endOffset, count } of outerFirst)
    own.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  const known = marks.get(file);
  marks.set(file, known === undefined ? own : own.map((byte, at) => byte | (known[at] ?? 0)));
}

function partsOf(marks: Uint8Array): (readonly [number, number])[] {
  const parts: (readonly [number, number])[] = [];
  for (let start = marks.indexOf(1); start >= 0;) {
    const end = marks.indexOf(0, start);
    parts.push([start, end < 0 ? marks.length : end]);
    start = end < 0 ? -1 : marks.indexOf(1, end);
  }
  return parts;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
