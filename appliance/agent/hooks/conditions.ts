import type { StepFields } from './fields.ts';
import type { RootFiles } from './root-files.ts';

export interface ConditionWorld {
  readonly files: RootFiles;
  /** As Go names it: amd64, arm64. */
  readonly architecture: string;
  /** Runs a shell line; true when it succeeds. */
  readonly test: (line: string) => Promise<boolean>;
}

/** Why a step is not to run here, or null. The conditions are yip's, in its order. */
export async function findSkipReason(
  fields: StepFields,
  world: ConditionWorld,
): Promise<string | null> {
  const { files } = world;
  if (fields.if !== undefined && !(await world.test(fields.if))) return 'its condition is not met';
  const isAboutOs = fields.only_os !== undefined || fields.only_os_version !== undefined;
  const os: OsRelease = isAboutOs ? readOsRelease(files) : {};
  // yip knows the pretty name only; its documentation writes ids.
  if (!matches(fields.only_os, [os.PRETTY_NAME, os.ID]))
    return `the system is ${os.PRETTY_NAME ?? os.ID ?? 'unknown'}`;
  if (!matches(fields.only_os_version, [os.VERSION_ID]))
    return `the system's version is ${os.VERSION_ID ?? 'unknown'}`;
  if (!matches(fields.only_arch, [world.architecture]))
    return `the architecture is ${world.architecture}`;
  return findFilesReason(fields.if_files, files);
}

function findFilesReason(wanted: StepFields['if_files'], files: RootFiles): string | null {
  if (!wanted) return null;
  const { any, all, none } = wanted;
  const isThere = (path: string): boolean => files.exists(path);
  if (!all.every(isThere)) return 'a file that it needs is not there';
  if (any.length > 0 && !any.some(isThere)) return 'none of the files is there';
  return none.some(isThere) ? 'a file is there that must not be' : null;
}

function matches(regex: string | undefined, candidates: readonly (string | undefined)[]): boolean {
  if (regex === undefined) return true;
  const compiled = new RegExp(regex);
  return candidates.some((candidate) => candidate !== undefined && compiled.test(candidate));
}

type OsRelease = Partial<Record<'PRETTY_NAME' | 'ID' | 'VERSION_ID', string>>;

/** os-release(5), as far as it is asked for. */
function readOsRelease(files: RootFiles): OsRelease {
  const text = files.read('/etc/os-release') ?? files.read('/usr/lib/os-release') ?? '';
  const found: OsRelease = {};
  for (const key of ['PRETTY_NAME', 'ID', 'VERSION_ID'] as const) {
    const value = new RegExp(`^${key}=(["']?)(.*)\\1$`, 'm').exec(text)?.[2];
    if (value !== undefined) found[key] = value;
  }
  return found;
}
