import type { RootFiles } from './root-files.ts';

const KEYS = ['PRETTY_NAME', 'ID', 'ID_LIKE', 'VERSION_ID', 'VERSION_CODENAME'] as const;

export type OsRelease = Partial<Record<(typeof KEYS)[number], string>>;

/** @returns null when the file is missing */
export function readOsRelease(files: RootFiles): OsRelease | null {
  const text = files.read('/etc/os-release') ?? files.read('/usr/lib/os-release');
  if (text === null) return null;
  const found: OsRelease = {};
  for (const key of KEYS) {
    const value = new RegExp(`^${key}=(["']?)(.*)\\1$`, 'm').exec(text)?.[2];
    if (value !== undefined) found[key] = value;
  }
  return found;
}
