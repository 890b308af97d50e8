import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import { until } from '#shared/abort/until.ts';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import { type LaunchedProgram, launchProgram, type LaunchProgram } from '#shared/process/launch.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import {
  isAlive,
  parseProcessStat,
  type ProcessIdentity,
  readBootId,
  signalProcess,
} from './process-identity.ts';

export interface ChildSupervisorOptions {
  /** Folder of the records. It may be lost at a reboot. */
  readonly dir: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** A killed process ends after its system call, which may never return on a hanging disk. */
const END_LIMIT_MS = 30_000;
/** There is no event for the end of another daemon's child. */
const END_POLL_MS = 20;
/** A stat line has about 300 characters. */
const MAX_STAT_LENGTH = 4096;

/** Prefix of the launching shell's messages. */
const STARTER = 'gnt-child';
/** @returns whether the last line of a program's output says that it could not be started */
export function isStartersWord(lastLine: string | undefined): boolean {
  return lastLine?.startsWith(`${STARTER}: `) ?? false;
}

/**
 * First process of the namespace. It prints its identity as seen by the host, and waits for an
 * answer, which arrives after the record was written. The end of the daemon ends the wait. Scripts
 * often put `$$` into file names, and every namespace counts from 1. So the program receives a pid
 * that the host has assigned, if the kernel allows that. The first argument is the program's PATH.
 *
 * It is bash, because dash drops variables with invalid names, such as `OSP_A.B`. `env` removes
 * bash's own exports. Messages of bash about the end of the program are dropped. Messages of `env`
 * about a failed start begin with STARTER.
 */
const FIRST_PROCESS = `
read -r stat </proc/self/stat && echo "$stat" >&3 && read -r word <&3 || exit 125
exec 3>&-
mount -t proc proc /proc || exit 125
{ echo "\${stat%% *}" >/proc/sys/kernel/ns_last_pid; } 2>/dev/null
PATH=$1
shift
unset PWD OLDPWD SHLVL
exec 4>&2 2>/dev/null
(exec -a ${STARTER} /usr/bin/env -u _ -- "$@" 2>&4 4>&-)
exit $?
`;
/** Reads no startup files, and no functions or options from the environment. */
const SHELL = ['/bin/bash', '--noprofile', '--norc', '-p', '-c'];

/**
 * No program outlives the daemon: the kernel kills `unshare` with the daemon, and `--kill-child`
 * kills its child and so the namespace.
 */
const NAMESPACES = ['--pid', '--fork', '--kill-child', '--mount', '--propagation', 'slave'];

const childRecord = z.object({
  pid: z.number(),
  startTicks: z.string(),
  bootId: z.string(),
  command: z.string(),
});
type ChildRecord = z.infer<typeof childRecord>;

/**
 * Runs programs that write for this daemon (scripts, builders) and must not outlive it. Each is the
 * first process of its own PID namespace. The kernel ends the whole namespace, including other
 * sessions, when that process or the daemon is killed. A record precedes the start, so that the
 * next daemon can wait for the end: a killed process ends only after its write.
 *
 * Mounts of a program are private and end with it.
 */
export function createChildSupervisor(options: ChildSupervisorOptions) {
  return {
    launch: ((...program) => launch(options, ...program)) satisfies LaunchProgram,
    /** Ends programs of an earlier daemon, and waits until none runs. */
    endPredecessors: async (): Promise<void> => {
      for (const name of await listRecords(options.dir)) await endPredecessor(options, name);
    },
  };
}

export type ChildSupervisor = ReturnType<typeof createChildSupervisor>;

async function launch(
  { dir }: ChildSupervisorOptions,
  ...[command, args, { stdio, env = {}, cwd }]: Parameters<LaunchProgram>
): ReturnType<LaunchProgram> {
  if (!Array.isArray(stdio) || stdio.length !== 3) throw new Error('expected three streams');
  // env(1) would take it for a variable.
  if (command.includes('=')) throw cannotStart(`its path contains '=': ${command}`);
  const path = env['PATH'] ?? SYSTEM_PATH;
  const first = [...SHELL, FIRST_PROCESS, STARTER, path, command, ...args];
  const starter = tieToDaemon('unshare', [...NAMESPACES, ...first]);
  const program = launchProgram([starter.command, ...starter.args], {
    cwd,
    env: { ...env, PATH: SYSTEM_PATH },
    stdio: [...stdio, 'pipe'],
  });
  const { child, exit } = program;
  const record = join(dir, `${randomUUID()}.json`);
  try {
    // The fourth stream is a `pipe`, which Node makes as a socket.
    const word = child.stdio[3] as Duplex;
    const identity = await readIdentity(word, exit);
    await writeRecord(record, { ...identity, bootId: readBootId(), command });
    forgetLater(record, exit);
    word.end('run\n');
    return {
      child,
      exit: exit.then(([status, signal]) => [status, signal ?? signalOf(status)] as const),
      // Kills the first process, so that `unshare` exits after the whole namespace.
      kill: (signal = 'SIGKILL') =>
        signal === 'SIGKILL' ? signalProcess(identity, signal) : program.kill(signal),
    };
  } catch (error) {
    program.kill();
    await rm(record, { force: true });
    throw error;
  }
}

/** @throws AppError HOST_PREREQUISITE if the program could not be started */
async function readIdentity(word: Duplex, exit: LaunchedProgram['exit']): Promise<ProcessIdentity> {
  let line = '';
  const ended = exit.then(
    ([status, signal]) => {
      throw cannotStart(`unshare ended with ${signal ?? status}`);
    },
    (error: unknown) => {
      throw cannotStart(messageOf(error), error);
    },
  );
  ended.catch(() => undefined); // handled by the race below
  word.setEncoding('utf8');
  while (!line.includes('\n') && line.length < MAX_STAT_LENGTH) {
    // 'data' has one argument, a string with the encoding above. `ended` only rejects.
    const [text] = (await Promise.race([once(word, 'data'), ended])) as [string];
    line += text;
  }
  word.on('error', () => undefined); // the program was killed
  const identity = parseProcessStat(line.trim());
  if (identity === undefined) throw new Error(`not a line of /proc/PID/stat: ${line}`);
  return identity;
}

function cannotStart(reason: string, cause?: unknown): AppError {
  return new AppError(
    'HOST_PREREQUISITE',
    `cannot run a program in its own PID namespace: ${reason}`,
    {
      hint: 'gnt-noded needs root, bash, and setpriv and unshare of util-linux 2.32 or later.',
      cause,
    },
  );
}

/** Writes the record atomically. It is not synced: a power loss ends the process too. */
async function writeRecord(path: string, record: ChildRecord): Promise<void> {
  const half = `${path}.new`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(half, JSON.stringify(record), { mode: 0o600 });
    await rename(half, path);
  } catch (error) {
    await rm(half, { force: true });
    throw error;
  }
}

function forgetLater(record: string, exit: LaunchedProgram['exit']): void {
  const forget = (): void => void rm(record, { force: true }).catch(() => undefined);
  exit.then(forget, forget);
}

/** Returns the signal of a shell's exit status. A program's own status above 128 looks the same. */
function signalOf(status: number | null): NodeJS.Signals | null {
  const found = Object.entries(constants.signals).find(([, number]) => number + 128 === status);
  // The keys of `os.constants.signals`.
  return (found?.[0] as NodeJS.Signals | undefined) ?? null;
}

async function listRecords(dir: string): Promise<readonly string[]> {
  try {
    return (await readdir(dir)).map((name) => join(dir, name));
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function endPredecessor(
  { logger, clock }: ChildSupervisorOptions,
  path: string,
): Promise<void> {
  const record = childRecord.safeParse(parseJson(await readFile(path, 'utf8'))).data;
  if (record !== undefined && record.bootId === readBootId()) {
    const { pid, command } = record;
    if (isAlive(record)) logger.warn('child.ended-after-restart', { pid, command });
    const hasEnded = (): boolean => {
      signalProcess(record, 'SIGKILL');
      return !isAlive(record);
    };
    if (!(await until(hasEnded, { everyMs: END_POLL_MS, limitMs: END_LIMIT_MS, clock }))) {
      logger.error('child.survives', { pid, command });
      return;
    }
  }
  await rm(path, { force: true });
}

/**
 * Returns a command that the kernel kills with this daemon. The supervisor's `launch` also makes
 * the next daemon wait for the end.
 */
export function tieToDaemon(
  command: string,
  args: readonly string[],
): { readonly command: string; readonly args: readonly string[] } {
  return { command: 'setpriv', args: ['--pdeathsig', 'KILL', command, ...args] };
}
