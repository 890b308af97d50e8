import { basename } from 'node:path';
import {
  AppError,
  type AppErrorOptions,
  messageOf,
  systemCodeOf,
} from '#shared/errors/app-error.ts';
import { isStartersWord } from '../../host/child-supervisor.ts';
import { type GroupOptions, type ProgramEnd, runInGroup } from '#shared/process/run-in-group.ts';

/** `stdin` is the dump for `import`, `stdout` receives the dump of `export`. */
export interface HostScriptOptions extends Pick<
  GroupOptions,
  'stdin' | 'stdout' | 'onLine' | 'launch'
> {
  /** Absolute path. */
  readonly path: string;
  readonly args?: readonly string[];
  /** The complete environment with OSP_*; the script inherits nothing. */
  readonly environment: Readonly<Record<string, string>>;
  /** Directories before Ganeti's PATH, for `gnt-channel`. */
  readonly extraPath?: readonly string[];
  /** Ganeti runs scripts in the folder of the definition. */
  readonly cwd: string;
  /** Kills the script and its process group. */
  readonly signal: AbortSignal;
}

const DRAIN_MS = 5000;

/** Thrown for a script that started and failed. */
export class ScriptFailed extends AppError {
  /** Unredacted output: it may contain private and secret values. */
  readonly lastLines: readonly string[];

  constructor(
    message: string,
    options: AppErrorOptions & { readonly lastLines: readonly string[] },
  ) {
    super('SCRIPT_FAILED', message, options);
    this.lastLines = options.lastLines;
  }
}

/**
 * Runs a trusted OS script on the host.
 * @throws ScriptFailed with the status and the last lines, AppError SCRIPT_FAILED, or the signal's
 * reason
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
  if (isStartersWord(end.lastLines.at(-1))) throw cannotBeRun(path, end.lastLines.at(-1));
  if (!end.isSuccess) throw scriptFailed(path, end);
}

/**
 * Tells whether the process failed to start. Node puts the failed call into `syscall` (`spawn
 * /srv/…`).
 */
function isAboutStart(error: unknown): boolean {
  return (
    systemCodeOf(error) !== undefined &&
    error instanceof Error &&
    'syscall' in error &&
    String(error.syscall).startsWith('spawn')
  );
}

function cannotBeRun(path: string, error: unknown): AppError {
  const reason = typeof error === 'string' ? error : messageOf(error);
  return new AppError('SCRIPT_FAILED', `${path} cannot be run: ${reason}`, {
    details: { script: path },
    cause: error,
    hint: 'Check its first line (#!) and its mode.',
  });
}

function scriptFailed(path: string, { how, status, signal, lastLines }: ProgramEnd): ScriptFailed {
  return new ScriptFailed(`OS ${basename(path)} script ${how}`, {
    details: { script: path, status, signal },
    hint: 'Its output is in the install log.',
    lastLines,
  });
}
