import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { INITRAMFS_MODULES } from './contents.ts';
import { type CpioEntry, encodeCpio } from './cpio.ts';
import { INIT, LEASE, MODPROBE, MODPROBE_PATH, NETWORK } from './init-scripts.ts';
import { type ModuleTable, withDependencies } from './modules.ts';

/**
 * Builds the initramfs from a root tree: busybox, the modules for the root disk and the network,
 * and four scripts.
 */
export async function buildInitramfs(
  rootPath: string,
  kernelVersion: string,
  table: ModuleTable,
): Promise<Buffer> {
  const directory = `lib/modules/${kernelVersion}`;
  const modules = withDependencies(table, INITRAMFS_MODULES);
  const read = (path: string): Promise<Buffer> => readFile(join(rootPath, path));
  const files: CpioEntry[] = [
    { path: 'bin/busybox', mode: 0o755, data: await read('bin/busybox') },
    { path: 'init', mode: 0o755, data: Buffer.from(INIT) },
    { path: 'lease', mode: 0o755, data: Buffer.from(LEASE) },
    { path: MODPROBE_PATH.slice(1), mode: 0o755, data: Buffer.from(MODPROBE) },
    { path: 'network', mode: 0o644, data: Buffer.from(NETWORK) },
    {
      path: `${directory}/modules.dep`,
      mode: 0o644,
      data: Buffer.from(dependencyFile(table, modules)),
    },
  ];
  for (const module of modules) {
    const data = await read(join('usr', directory, module));
    files.push({ path: `${directory}/${basename(module)}`, mode: 0o644, data });
  }
  return encodeCpio(['bin', 'dev', 'lib', 'lib/modules', directory, 'proc', 'root', 'sys'], files);
}

/** Writes modules.dep for busybox's modprobe, with all modules in one folder. */
function dependencyFile(table: ModuleTable, modules: readonly string[]): string {
  const line = (module: string): string =>
    `${basename(module)}: ${(table.get(module) ?? []).map((path) => basename(path)).join(' ')}`;
  return `${modules.map(line).join('\n')}\n`;
}
