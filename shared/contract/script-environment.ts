/**
 * What a script is told of its OS definition and nothing else is (ganeti-os-interface(7)): all that
 * `verify` gets besides OSP_*.
 */
export const CORE_VARIABLES = ['OS_API_VERSION', 'OS_NAME', 'OS_VARIANT', 'DEBUG_LEVEL'] as const;

/** Ganeti's variables of the disk that a run of `import` or `export` is for. */
export function planDumpVariables(
  script: 'import' | 'export',
  diskIndex: number,
  path: string,
): Record<string, string> {
  const prefix = script.toUpperCase();
  return {
    [`${prefix}_INDEX`]: String(diskIndex),
    [`${prefix}_DEVICE`]: path,
    [`${prefix}_DISK_PATH`]: path,
  };
}
