import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** A swap of the host, as /proc/swaps names it. */
export interface SwapFact {
  readonly name: string;
  /** What is written there can be read by nobody who finds the disk; memory (zram) counts too. */
  readonly isSafe: boolean;
}

export interface SecrecyFacts {
  readonly swaps: readonly SwapFact[];
  /** Whether the daemons may be swapped out, by name. */
  readonly swappable: readonly string[];
  /** kernel.core_pattern. */
  readonly corePattern: string;
  /** Names of the daemons of which a core could be made. */
  readonly dumpable: readonly string[];
}

/** Collects facts of this daemon and of metad, where it runs. */
export function collectSecrecyFacts(metadPid: number | null): SecrecyFacts {
  const daemons = new Map([['gnt-noded', process.pid]]);
  if (metadPid !== null) daemons.set('gnt-metad', metadPid);
  const named = (has: (pid: number) => boolean): readonly string[] =>
    [...daemons].flatMap(([name, pid]) => (has(pid) ? [name] : []));
  return {
    swaps: listSwaps(),
    swappable: named((pid) => maySwap(pid)),
    corePattern: readText('/proc/sys/kernel/core_pattern'),
    dumpable: named(leavesCore),
  };
}

/**
 * Its limit tells: at one byte the kernel makes neither a file nor a program's core, at none no
 * file.
 */
function leavesCore(pid: number): boolean {
  const limit = /^Max core file size +(\S+)/m.exec(readText(`/proc/${pid}/limits`))?.[1];
  const isPiped = readText('/proc/sys/kernel/core_pattern').startsWith('|');
  return limit !== undefined && limit !== '1' && (isPiped || limit !== '0');
}

/** The lines of /proc/swaps but for its heading; blanks of names are written as `\040` there. */
export function parseSwaps(text: string): readonly string[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => line.split(/\s+/, 1).filter(Boolean))
    .map((name) => name.replaceAll('\\040', ' '));
}

function listSwaps(): readonly SwapFact[] {
  return parseSwaps(readText('/proc/swaps')).map((name) => ({ name, isSafe: isSafe(name) }));
}

/**
 * Whether the kernel may swap a process out, by its control group and those above it (cgroup v2;
 * the first version has no such bound of its own).
 * @param root where the hierarchy is; for tests
 */
export function maySwap(pid: number, root = '/sys/fs/cgroup'): boolean {
  const path = /^0::(\/.*)$/m.exec(readText(`/proc/${pid}/cgroup`))?.[1];
  if (path === undefined) return true;
  for (let group = path; ; group = dirname(group)) {
    if (readText(join(root, group, 'memory.swap.max')).trim() === '0') return false;
    if (group === '/') return true;
  }
}

function isSafe(name: string): boolean {
  const found = statSync(name, { throwIfNoEntry: false });
  if (found === undefined) return false;
  const device = found.isBlockDevice() ? found.rdev : found.dev;
  // The two are packed as makedev(3) does it.
  const [major, minor] = [(device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00)];
  return isSafeDevice(`/sys/dev/block/${major}:${minor}`);
}

/** It is encrypted (dm-crypt), or all below it is; or it is memory that is written nowhere. */
function isSafeDevice(path: string): boolean {
  if (!existsSync(path)) return false;
  if (readText(join(path, 'dm/uuid')).startsWith('CRYPT-')) return true;
  const store = readText(join(path, 'backing_dev')).trim();
  if (existsSync(join(path, 'mm_stat'))) return store === '' || store === 'none';
  // A partition has none of its own, and its disk is no safer than it is.
  const below = join(path, 'slaves');
  const slaves = existsSync(below) ? readdirSync(below) : [];
  return slaves.length > 0 && slaves.every((slave) => isSafeDevice(join(below, basename(slave))));
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return '';
    throw error;
  }
}
