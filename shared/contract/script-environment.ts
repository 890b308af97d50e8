/** The only variables of `verify` besides OSP_* (ganeti-os-interface(7)). */
export const CORE_VARIABLES = ['OS_API_VERSION', 'OS_NAME', 'OS_VARIANT', 'DEBUG_LEVEL'] as const;

/** Returns Ganeti's variables for the disk of one `import` or `export` run. */
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
