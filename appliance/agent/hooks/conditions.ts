import { AppError } from '#shared/errors/app-error.ts';
import type { ProgramEnd } from '#shared/process/run-in-group.ts';
import type { StepFields } from './fields.ts';
import { compileGoRegex } from './go-regex.ts';
import { type OsRelease, readOsRelease } from './os-release.ts';
import type { RootFiles } from './root-files.ts';

export interface ConditionWorld {
  readonly files: RootFiles;
  /** In Go's names: amd64, arm64. */
  readonly architecture: string;
  /** INSTANCE_NAME, the instance's host name at its own boot. */
  readonly instance: string;
  readonly run: (program: readonly string[]) => Promise<ProgramEnd>;
}

/**
 * Evaluates its first argument as a shell line. Exit status 0 or 1 is the result. Any other status,
 * or a signal, means that the line was not evaluated.
 */
const SYNTAX_STATUS = 3;
const JUDGE = `/bin/sh -n -c "$1" || exit ${SYNTAX_STATUS}
(line=$1; shift; eval "$line") && exit 0
exit 1`;

/**
 * Returns the reason for skipping a step, or null. The conditions are yip's, in its order.
 * @throws AppError HOOK_FAILED when a condition cannot be evaluated: a silently skipped step would
 * not be noticed
 */
export async function findSkipReason(
  fields: StepFields,
  world: ConditionWorld,
): Promise<string | null> {
  const { files } = world;
  if (!matches(fields.node, [world.instance])) return `the instance is ${world.instance}`;
  if (fields.if !== undefined && !(await judge(fields.if, world)))
    return 'the condition is not met';
  const isAboutOs = fields.only_os !== undefined || fields.only_os_version !== undefined;
  const os: OsRelease = isAboutOs ? requireOsRelease(files) : {};
  // yip compares the pretty name only; its documentation uses ids.
  if (!matches(fields.only_os, [os.PRETTY_NAME, os.ID]))
    return `the system is ${os.PRETTY_NAME ?? os.ID ?? 'unknown'}`;
  if (!matches(fields.only_os_version, [os.VERSION_ID]))
    return `the system's version is ${os.VERSION_ID ?? 'unknown'}`;
  if (!matches(fields.only_arch, [world.architecture]))
    return `the architecture is ${world.architecture}`;
  return findManagerReason(fields, files) ?? findFilesReason(fields.if_files, files);
}

async function judge(line: string, { run }: ConditionWorld): Promise<boolean> {
  const { status, how } = await run(['/bin/sh', '-c', JUDGE, 'sh', line]);
  if (status === 0 || status === 1) return status === 0;
  if (status === SYNTAX_STATUS)
    throw new AppError('HOOK_FAILED', 'the condition is not a valid shell command: syntax error');
  throw new AppError('HOOK_FAILED', `cannot evaluate the condition: /bin/sh ${how}`, {
    hint: 'Conditions need /bin/sh in the root file system of their stage.',
  });
}

function findManagerReason(
  { only_service_manager: wanted }: StepFields,
  files: RootFiles,
): string | null {
  if (wanted === undefined) return null;
  const has = (program: string): boolean =>
    ['/sbin', '/bin', '/usr/sbin', '/usr/bin'].some((at) => files.exists(`${at}/${program}`));
  const managers = [...(has('systemctl') ? ['systemd'] : []), ...(has('openrc') ? ['openrc'] : [])];
  if (managers.length > 1)
    throw new AppError(
      'HOOK_FAILED',
      'cannot determine the service manager: both systemd and openrc are installed',
    );
  return managers[0] === wanted ? null : `the service manager is ${managers[0] ?? 'another'}`;
}

function requireOsRelease(files: RootFiles): OsRelease {
  const found = readOsRelease(files);
  if (found !== null) return found;
  throw new AppError(
    'HOOK_FAILED',
    'cannot determine the operating system: it has no os-release file',
    {
      hint: 'Leave out only_os and only_os_version, or write /etc/os-release in an earlier step.',
    },
  );
}

function findFilesReason(wanted: StepFields['if_files'], files: RootFiles): string | null {
  if (!wanted) return null;
  const { any, all, none } = wanted;
  const isThere = (path: string): boolean => files.exists(path);
  if (!all.every(isThere)) return 'a required file does not exist';
  if (any.length > 0 && !any.some(isThere)) return 'none of the listed files exists';
  return none.some(isThere) ? 'a file exists that must not exist' : null;
}

function matches(regex: string | undefined, candidates: readonly (string | undefined)[]): boolean {
  if (regex === undefined) return true;
  const compiled = compileGoRegex(regex);
  return candidates.some((candidate) => candidate !== undefined && compiled.test(candidate));
}
