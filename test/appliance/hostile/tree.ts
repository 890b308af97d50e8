import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { type BigIntStats, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Describes a tree by all properties that an archive can set: names as bytes, types, owners, modes,
 * times, content, holes, hard links, link targets and extended attributes with ACLs. One line per
 * file, without the root itself. Times from `sinceMs` on are "now".
 */
export function describeTree(root: string, sinceMs: number): string[] {
  const firstName = new Map<bigint, string>();
  const lines: string[] = [];
  const walk = (directory: Buffer, shown: string): void => {
    for (const name of readdirSync(directory, { encoding: 'buffer' }).sort((a, b) =>
      Buffer.compare(a, b),
    )) {
      const path = Buffer.concat([directory, Buffer.from('/'), name]);
      const stats = lstatSync(path, { bigint: true });
      const label = `${shown}/${name.toString('latin1')}`;
      const same = stats.isDirectory() ? undefined : firstName.get(stats.ino);
      if (same === undefined) firstName.set(stats.ino, label);
      lines.push(`${label} ${same === undefined ? describe(path, stats, sinceMs) : `= ${same}`}`);
      if (stats.isDirectory()) walk(path, label);
    }
  };
  walk(Buffer.from(root), '');
  return [...lines, ...attributesOf(root)];
}

function describe(path: Buffer, stats: BigIntStats, sinceMs: number): string {
  const isNow = stats.mtimeMs >= BigInt(sinceMs) - 1000n && stats.mtimeMs <= BigInt(Date.now());
  const common = `${stats.mode.toString(8)} ${stats.uid}:${stats.gid} ${isNow ? 'now' : stats.mtimeNs}`;
  if (stats.isSymbolicLink())
    return `${common} -> ${readlinkSync(path, { encoding: 'buffer' }).toString('latin1')}`;
  if (!stats.isFile()) return common;
  const isSparse = stats.blocks * 512n < stats.size ? 'sparse' : 'full';
  const MAX_HASHED = 64n * 1024n * 1024n;
  const content =
    stats.size > MAX_HASHED ? '' : createHash('sha256').update(readFileSync(path)).digest('hex');
  return `${common} ${stats.size} ${isSparse} ${content}`;
}

function attributesOf(root: string): string[] {
  const args = ['-R', '-P', '-h', '-d', '-m', '-', '-e', 'hex', '--absolute-names', '.'];
  const said = execFileSync('getfattr', args, { cwd: root, encoding: 'latin1' });
  return said.split('\n\n').filter((block) => block !== '' && !block.startsWith('# file: .\n'));
}
