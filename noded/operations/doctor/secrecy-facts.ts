import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { systemCodeOf } from '#shared/errors/app-error.ts';

/** A swap of the host, as /proc/swaps names it. */
export interface SwapFact {
  readonly name: string;
  /** Encrypted, or in memory (zram): a stolen disk reveals nothing. */
  readonly isSafe: boolean;
}

export interface SecrecyFacts {
  readonly swaps: readonly SwapFact[];
  /** Names of the daemons that may be swapped out. */
  readonly swappable: readonly string[];
  /** kernel.core_pattern. */
  readonly corePattern: string;
  /** Names of the daemons that may leave a core dump. */
  readonly dumpable: readonly string[];
}

export function collectSecrecyFacts(metadPid: number | null): SecrecyFacts {
  const daemons = new Map([['gnt-noded', process.pid]]);
  if (metadPid !== null) daemons.set('gnt-metad', metadPid);
  const named = (has: (pid: number) => boolean): readonly string[] =>
    [...daemons].flatMap(([name, pid]) => (has(pid) ? [name] : []));
  const corePattern = readText('/proc/sys/kernel/core_pattern');
  return {
    swaps: listSwaps(),
    swappable: named((pid) => maySwap(pid)),
    corePattern,
    dumpable: named((pid) => leavesCore(readText(`/proc/${pid}/limits`), corePattern)),
  };
}

/**
 * Judges by the limit RLIMIT_CORE: at 1 byte the kernel writes no file and starts no program, at 0
 * it writes no file. Pure.
 * @param limits the content of /proc/PID/limits; empty if the process has ended
 */
export function leavesCore(limits: string, corePattern: string): boolean {
  const limit = /^Max core file size +(\S+)/m.exec(limits)?.[1];
  const isPiped = corePattern.startsWith('|');
  return limit !== undefined && limit !== '1' && (isPiped || limit !== '0');
}

/**
 * Returns the names in /proc/swaps, without the heading. The kernel writes blanks in names as
 * `\040`.
 */
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
 * Returns whether the kernel may swap a process out, by its control group and the groups above
 * (cgroup v2; version 1 has no separate limit of swap).
 * @param root of the hierarchy; for tests
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
  // Major and minor numbers are packed as in makedev(3).
  const [major, minor] = [(device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00)];
  return isSafeDevice(`/sys/dev/block/${major}:${minor}`);
}

/**
 * Returns whether a device is encrypted (dm-crypt), lies only on encrypted devices, or is memory
 * without a backing device.
 * @param path its folder below /sys/dev/block
 */
export function isSafeDevice(path: string): boolean {
  if (!existsSync(path)) return false;
  if (readText(join(path, 'dm/uuid')).startsWith('CRYPT-')) return true;
  const store = readText(join(path, 'backing_dev')).trim();
  if (existsSync(join(path, 'mm_stat'))) return store === '' || store === 'none';
  // A partition has no slaves: its disk is no safer than the partition.
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
