import { basename } from 'node:path';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { type GroupOptions, type ProgramEnd, runInGroup } from '#shared/process/run-in-group.ts';

/** With `stdin` for an import, which is the dump, and `stdout` for an export, which takes it. */
export interface HostScriptOptions extends Pick<GroupOptions, 'stdin' | 'stdout' | 'onLine'> {
  /** Absolute path of the script. */
  readonly path: string;
  readonly args?: readonly string[];
  /** The whole environment, OSP_* included; nothing is inherited. */
  readonly environment: Readonly<Record<string, string>>;
  /** Directories before Ganeti's PATH, for `gnt-channel`. */
  readonly extraPath?: readonly string[];
  /** Working directory; Ganeti runs scripts in the definition's. */
  readonly cwd: string;
  /** Kills the script and all of its process group. */
  readonly signal: AbortSignal;
}

const DRAIN_MS = 5000;

/**
 * Runs a trusted OS script on the host, in a process group of its own.
 * @throws AppError SCRIPT_FAILED with the status and the last lines, or the signal's reason
 */
export async function runHostScript(options: HostScriptOptions): Promise<void> {
  const { path, args = [], environment, extraPath = [], ...others } = options;
  const end = await runInGroup({
    ...others,
    command: path,
    args,
    environment: { ...environment, PATH: [...extraPath, environment['PATH'] ?? ''].join(':') },
    drainMs: DRAIN_MS,
  }).catch((error: unknown) => {
    throw isAboutStart(error) ? cannotBeRun(path, error) : error;
  });
  if (!end.isSuccess) throw scriptFailed(path, end);
}

/** Node names the call that failed (`spawn /srv/…`). */
function isAboutStart(error: unknown): boolean {
  return (
    systemCodeOf(error) !== undefined &&
    error instanceof Error &&
    'syscall' in error &&
    String(error.syscall).startsWith('spawn')
  );
}

function cannotBeRun(path: string, error: unknown): AppError {
  return new AppError('SCRIPT_FAILED', `${path} cannot be run: ${messageOf(error)}`, {
    details: { script: path },
    cause: error,
    hint: 'check its first line (#!) and its mode',
  });
}

function scriptFailed(path: string, { how, status, signal, lastLines }: ProgramEnd): AppError {
  return new AppError('SCRIPT_FAILED', `OS ${basename(path)} script ${how}`, {
    details: { script: path, status, signal, logTail: [...lastLines] },
    hint: 'its output is in the install log',
  });
}
