import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, open, readFile, rename, rm, stat, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../scripts/demo/lab.ts';
import { findThread, type Thread } from './kill-at-call.ts';
import { findUnsynced, TRACED, type Unsynced } from './unsynced.ts';

/** Number of a thread's sync; null: after the reported success. */
export type CutPoint = { readonly thread: Thread; readonly when: number } | null;

/** A daemon whose writes are traced until the power cut. */
export interface PowerCut extends AsyncDisposable {
  /** Kills all processes of the node, undoes unsynced changes, and removes `/run`. */
  cut(): Promise<Unsynced>;
  disarm(): Promise<void>;
  /** Detaches strace after the daemon's end, because strace 6.1 does not always do it. */
  letGo(): Promise<void>;
}

/** Folders that survive a reboot and must be synced; logs need not be. */
const KEPT = ['var/lib/gnt', 'srv/ganeti', 'etc/gnt'];
/** SQLite recreates its shared memory from the WAL. */
const MADE_ANEW = /-shm$/;
const ATTACH_POLL_MS = 2;
const TIMES = '--absolute-timestamps=format:unix,precision:ns';

export async function armPowerCut(lab: Lab, point: CutPoint): Promise<PowerCut> {
  const { root } = lab.paths;
  const pid = lab.node().pid ?? 0;
  const dir = await mkdtemp('/tmp/gnt-cut-');
  const before = join(dir, 'before');
  await keepCopy(root, before);
  const tracers = point === null ? [attach(['-f', '-p', String(pid)], dir, 'all')] : attachThreads(pid, point, dir); // prettier-ignore
  await Promise.all(tracers.map(({ isAttached }) => isAttached(pid)));
  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    for (const { child } of tracers) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill(signal);
      await gone;
    }
  };
  const disarm = (): Promise<void> => end('SIGTERM');
  return {
    disarm,
    letGo: () => end('SIGKILL'),
    cut: async () => {
      await Promise.all((await lab.processes()).map((one) => killed(one.pid)));
      await end('SIGKILL');
      const isBelow = (path: string): boolean =>
        !MADE_ANEW.test(path) && KEPT.some((kept) => path.startsWith(join(root, kept, '/')));
      const copyOf = (path: string): string => join(before, path.slice(root.length));
      const lines = await readTraces(tracers.map(({ output }) => output));
      const unsynced = findUnsynced(lines, isBelow, (path) => existsSync(copyOf(path)));
      await lose(unsynced, copyOf);
      await rm(lab.paths.runDir, { recursive: true, force: true });
      return unsynced;
    },
    [Symbol.asyncDispose]: async () => {
      await disarm();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** @param before path of a folder that does not exist yet */
async function keepCopy(root: string, before: string): Promise<void> {
  for (const kept of KEPT) {
    const from = join(root, kept);
    if (existsSync(from))
      await cp(from, join(before, kept), { recursive: true, preserveTimestamps: true });
  }
}

/**
 * Runs a program until the nth sync of one of its threads, or to its end, and cuts the power there.
 * Unsynced changes are undone, including the folders above its files.
 * @returns the exit status, null for an interrupted program, and the lost changes
 */
export async function cutPowerOfProgram(
  root: string,
  command: readonly string[],
  when: number | null,
): Promise<{ readonly status: number | null; readonly lost: Unsynced }> {
  const dir = await mkdtemp('/tmp/gnt-cut-');
  try {
    const before = join(dir, 'before');
    const path = join(dir, 'trace');
    await keepCopy(root, before);
    const inject = when === null ? [] : ['-e', `inject=fsync,fdatasync:signal=KILL:when=${when}`];
    const args = [
      '-f',
      '-qq',
      '-y',
      '-s',
      '0',
      TIMES,
      '-e',
      `trace=${TRACED}`,
      '-e',
      'signal=none',
    ];
    const child = spawn('strace', [...args, ...inject, '-o', path, ...command], {
      env: { ...process.env, GNT_ROOT: root, UV_THREADPOOL_SIZE: '1' },
      stdio: 'ignore',
    });
    // The type follows Node's documentation of the event.
    const [status] = (await once(child, 'exit')) as [number | null];
    const copyOf = (file: string): string => join(before, file.slice(root.length));
    const lines = await readTraces([{ path, tid: null }]);
    const lost = findUnsynced(
      lines,
      (file) => file.startsWith(`${root}/`) && !MADE_ANEW.test(file),
      (file) => existsSync(copyOf(file)),
    );
    await lose(lost, copyOf);
    return { status, lost };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

interface Tracer {
  readonly child: ChildProcess;
  readonly output: { readonly path: string; readonly tid: number | null };
  readonly isAttached: (pid: number) => Promise<void>;
}

function attachThreads(
  pid: number,
  { thread, when }: NonNullable<CutPoint>,
  dir: string,
): readonly Tracer[] {
  return (['loop', 'files'] as const).map((one) => {
    const tid = findThread(pid, one);
    if (tid === undefined) throw new Error(`process ${pid} has no thread for ${one}`);
    const inject = one === thread ? ['-e', `inject=fsync,fdatasync:signal=KILL:when=${when}`] : [];
    return attach(['-p', String(tid), ...inject], dir, one, tid);
  });
}

function attach(
  words: readonly string[],
  dir: string,
  name: string,
  tid: number | null = null,
): Tracer {
  const path = join(dir, name);
  const args = ['-qq', '-y', '-s', '0', TIMES, '-e', `trace=${TRACED}`, '-e', 'signal=none'];
  const child = spawn('strace', [...args, ...words, '-o', path], { stdio: 'ignore' });
  return {
    child,
    output: { path, tid },
    isAttached: async (pid) => {
      const status = `/proc/${pid}/task/${tid ?? pid}/status`;
      while (/^TracerPid:\s+0$/m.test(await readFile(status, 'utf8'))) {
        if (child.exitCode !== null) throw new Error('strace does not attach');
        await sleep(ATTACH_POLL_MS);
      }
    },
  };
}

/** Merges the traces by time. Each line begins with its thread instead of the time. */
async function readTraces(outputs: readonly Tracer['output'][]): Promise<readonly string[]> {
  const timed: { readonly ns: bigint; readonly line: string }[] = [];
  for (const { path, tid } of outputs) {
    for (const line of (await readFile(path, 'utf8')).split('\n')) {
      const [, thread = String(tid), s, ns, rest] = /^(?:(\d+) +)?(\d+)\.(\d{9}) (.*)$/.exec(line) ?? []; // prettier-ignore
      if (s !== undefined) timed.push({ ns: BigInt(`${s}${ns}`), line: `${thread} ${rest}` });
    }
  }
  timed.sort((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0));
  return timed.map(({ line }) => line);
}

async function killed(pid: number): Promise<void> {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    return; // it has ended already
  }
  // The link of a zombie cannot be read.
  while (existsSync(`/proc/${pid}/exe`)) await sleep(ATTACH_POLL_MS);
}

/**
 * Restores the former contents, or empties new files. Then undoes changes of names, the last one
 * first.
 */
async function lose(
  { contents, names }: Unsynced,
  copyOf: (path: string) => string,
): Promise<void> {
  const isNamed = (path: string): boolean =>
    names.some((change) => change.kind !== 'gone' && change.path === path);
  for (const [path, what] of contents) {
    if (!existsSync(path) || !(await stat(path)).isFile()) continue;
    if (what !== 'whole') await zero(path, what);
    else if (existsSync(copyOf(path)) && !isNamed(path)) await cp(copyOf(path), path);
    else await truncate(path, 0);
  }
  for (const change of names.toReversed()) {
    const { kind, path } = change;
    const isThere = existsSync(path);
    if (kind === 'made') await rm(path, { recursive: true, force: true });
    if (kind === 'moved' && isThere && existsSync(dirname(change.from)))
      await rename(path, change.from);
    // Moved and then removed: it returns to its first name.
    if (kind === 'moved' && !isThere) await bringBack(change.from, copyOf);
    if (kind !== 'made') await bringBack(path, copyOf);
  }
}

async function bringBack(path: string, copyOf: (path: string) => string): Promise<void> {
  if (!existsSync(path) && existsSync(copyOf(path)) && existsSync(dirname(path)))
    await cp(copyOf(path), path, { recursive: true, preserveTimestamps: true });
}

async function zero(
  path: string,
  ranges: readonly (readonly [offset: number, length: number])[],
): Promise<void> {
  await using file = await open(path, 'r+');
  const { size } = await file.stat();
  for (const [offset, length] of ranges) {
    const end = Math.min(size, offset + length);
    if (end > offset) await file.write(Buffer.alloc(end - offset), 0, end - offset, offset);
  }
}

/** Lists the lost changes for messages. */
export function describeUnsynced({ contents, names }: Unsynced): string {
  const lost = [...contents.keys(), ...names.map(({ kind, path }) => `${kind} ${path}`)];
  return lost.length === 0 ? 'nothing was unsynced' : `unsynced: ${lost.join(', ')}`;
}
