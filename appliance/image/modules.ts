import { basename } from 'node:path';

/**
 * Paths of modules, relative to the version's directory, with their transitive dependencies
 * (modules.dep).
 */
export type ModuleTable = ReadonlyMap<string, readonly string[]>;

export function parseModulesDep(text: string): ModuleTable {
  const table = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [path, needs] = line.split(':');
    if (path && needs !== undefined) table.set(path, needs.trim().split(/\s+/).filter(Boolean));
  }
  return table;
}

/**
 * Returns the modules of these names or directories and their dependencies, sorted.
 * @param wanted names such as `virtio_net`, or directories with a slash at the end
 */
export function withDependencies(table: ModuleTable, wanted: readonly string[]): string[] {
  const chosen = new Set<string>();
  for (const [path, needs] of table) {
    const name = moduleName(path);
    if (!wanted.some((item) => (item.endsWith('/') ? path.startsWith(item) : item === name)))
      continue;
    for (const each of [path, ...needs]) chosen.add(each);
  }
  return [...chosen].sort();
}

function moduleName(path: string): string {
  return basename(path)
    .replace(/\.ko(\.\w+)?$/, '')
    .replaceAll('-', '_');
}
