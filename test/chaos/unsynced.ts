import { dirname } from 'node:path';

/** A change of a folder that a power cut may undo. */
export type NameChange =
  | { readonly kind: 'made' | 'gone'; readonly path: string }
  | { readonly kind: 'moved'; readonly path: string; readonly from: string };

/** Unsynced writes of a file; `whole` when the trace has no offsets. */
export type Unwritten = 'whole' | (readonly [offset: number, length: number])[];

/** Changes that a power cut may undo, by the strictest reading of POSIX. */
export interface Unsynced {
  /** Files by their present names. */
  readonly contents: ReadonlyMap<string, Unwritten>;
  /** In the order of the changes. */
  readonly names: readonly NameChange[];
}

/** System calls for strace that change a file or a name, or sync one. */
export const TRACED =
  'openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,' +
  'write,writev,pwrite64,pwritev,ftruncate,fallocate,copy_file_range,sendfile,fsync,fdatasync,syncfs';

interface Call {
  readonly name: string;
  readonly args: string;
  readonly result: string;
  /** Line number of the call's start in the trace. */
  readonly begunAt: number;
  readonly endedAt: number;
}

const FINISHED = /^(\d+)\s+(\w+)\((.*)\)\s+= (.*)$/;
const UNFINISHED = /^(\d+)\s+(\w+)\((.*) <unfinished \.\.\.>$/;
const RESUMED = /^(\d+)\s+<\.\.\. (\w+) resumed>(.*)\)\s+= (.*)$/;

/** Returns the calls in the order of their ends. Unfinished calls come last, without a result. */
function readCalls(lines: readonly string[]): readonly Call[] {
  const open = new Map<string, Omit<Call, 'result' | 'endedAt'>>();
  const calls: Call[] = [];
  for (const [at, line] of lines.entries()) {
    const [, finishedBy, finished, finishedArgs = '', finishedResult = ''] =
      FINISHED.exec(line) ?? [];
    const [, begunBy, begun, begunArgs = ''] = UNFINISHED.exec(line) ?? [];
    const [, endedBy, , endedArgs = '', endedResult = ''] = RESUMED.exec(line) ?? [];
    if (begunBy !== undefined && begun !== undefined) {
      open.set(begunBy, { name: begun, args: begunArgs, begunAt: at });
    } else if (endedBy !== undefined) {
      const call = open.get(endedBy);
      open.delete(endedBy);
      if (call === undefined) continue;
      const args = call.args + endedArgs;
      calls.push({ ...call, args, result: endedResult, endedAt: at });
    } else if (finishedBy !== undefined && finished !== undefined) {
      const call = { name: finished, args: finishedArgs, result: finishedResult };
      calls.push({ ...call, begunAt: at, endedAt: at });
    }
  }
  const last = [...open.values()].map((call) => ({ ...call, result: '?', endedAt: Infinity }));
  return [...calls, ...last];
}

/**
 * Returns the unsynced changes below a folder in a trace (`strace -f -y -s 0`). An unfinished call
 * counts as done, an unfinished sync does not.
 */
export function findUnsynced(
  lines: readonly string[],
  isBelow: (path: string) => boolean,
  isThere: (path: string) => boolean,
): Unsynced {
  const fold = new Fold(isBelow, isThere);
  for (const call of readCalls(lines)) fold.take(call);
  return fold.result();
}

interface Mark {
  readonly at: number;
  readonly range: readonly [number, number] | 'whole';
}

/** INVARIANT: contents are kept under the present names of their files. */
class Fold {
  readonly #isBelow: (path: string) => boolean;
  readonly #isThere: (path: string) => boolean;
  readonly #contents = new Map<string, Mark[]>();
  #names: { readonly at: number; readonly change: NameChange }[] = [];
  readonly #known = new Set<string>();

  constructor(isBelow: (path: string) => boolean, isThere: (path: string) => boolean) {
    this.#isBelow = isBelow;
    this.#isThere = isThere;
  }

  take({ name, args, result, begunAt, endedAt }: Call): void {
    if (result.startsWith('-1')) return;
    const [first = ''] = pathsOf(args);
    switch (name) {
      case 'openat':
      case 'creat':
        return this.#opened(args, begunAt);
      case 'mkdir':
      case 'mkdirat':
        return this.#named({ kind: 'made', path: first }, begunAt);
      case 'link':
      case 'linkat':
        return this.#named({ kind: 'made', path: pathsOf(args).at(-1) ?? '' }, begunAt);
      case 'unlink':
      case 'unlinkat':
      case 'rmdir':
        this.#contents.delete(first);
        return this.#named({ kind: 'gone', path: first }, begunAt);
      case 'rename':
      case 'renameat':
      case 'renameat2':
        return this.#moved(first, pathsOf(args)[1] ?? '', begunAt);
      case 'fsync':
      case 'fdatasync':
        if (endedAt !== Infinity) this.#synced(describedBy(args), begunAt);
        return;
      case 'syncfs':
        throw new Error('a sync of a whole file system is not understood');
      default:
        return this.#written(name, args, begunAt);
    }
  }

  result(): Unsynced {
    const contents = new Map<string, Unwritten>();
    for (const [path, marks] of this.#contents) {
      const ranges = marks.map(({ range }) => range);
      const isWhole = ranges.includes('whole');
      if (ranges.length > 0)
        contents.set(path, isWhole ? 'whole' : ranges.filter((range) => range !== 'whole').map(([offset, length]) => [offset, length])); // prettier-ignore
    }
    return { contents, names: this.#names.map(({ change }) => change) };
  }

  #opened(args: string, at: number): void {
    const path = pathsOf(args)[0] ?? '';
    if (!this.#isBelow(path)) return;
    const isNew = args.includes('O_CREAT') && !this.#isThere(path) && !this.#known.has(path);
    if (isNew) this.#named({ kind: 'made', path }, at);
    if (args.includes('O_TRUNC') && !isNew) this.#mark(path, { at, range: 'whole' });
  }

  #named(change: NameChange, at: number): void {
    if (!this.#isBelow(change.path)) return;
    if (change.kind === 'gone') this.#known.delete(change.path);
    else this.#known.add(change.path);
    this.#names.push({ at, change });
  }

  #moved(from: string, to: string, at: number): void {
    if (!this.#isBelow(to)) return;
    const moved = (path: string): string =>
      path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
    this.#contents.delete(to);
    for (const [path, marks] of [...this.#contents]) {
      if (moved(path) === path) continue;
      this.#contents.delete(path);
      this.#contents.set(moved(path), marks);
    }
    this.#known.delete(from);
    this.#named({ kind: 'moved', path: to, from }, at);
  }

  #written(name: string, args: string, at: number): void {
    const path = describedBy(args);
    if (!this.#isBelow(path)) return;
    const numbers = args.split(', ').slice(1).map(Number);
    const [offset = NaN, length = NaN] =
      name === 'pwrite64' ? [numbers.at(-1), numbers.at(-2)] : [];
    const isKnown = Number.isInteger(offset) && Number.isInteger(length);
    this.#mark(path, { at, range: isKnown ? [offset, length] : 'whole' });
  }

  #mark(path: string, mark: Mark): void {
    this.#contents.set(path, [...(this.#contents.get(path) ?? []), mark]);
  }

  /** Drops the changes that began before the sync began. */
  #synced(path: string, begunAt: number): void {
    const marks = (this.#contents.get(path) ?? []).filter(({ at }) => at > begunAt);
    if (marks.length === 0) this.#contents.delete(path);
    else this.#contents.set(path, marks);
    this.#names = this.#names.filter(({ at, change }) => at > begunAt || dirname(change.path) !== path); // prettier-ignore
  }
}

/** Returns the path of the first descriptor, at the time of the call. */
function describedBy(args: string): string {
  return /^\d+<([^>]*)>/.exec(args)?.[1] ?? '';
}

/** Returns the quoted paths. A relative path is resolved with the folder before it. */
function pathsOf(args: string): readonly string[] {
  return [...args.matchAll(/(?:<([^>]*)>, )?"([^"]*)"/g)].map(([, folder = '', path = '']) =>
    path.startsWith('/') ? path : `${folder}/${path}`,
  );
}
