import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Clock } from '#shared/clock/clock.ts';
import { AppError, messageOf, systemCodeOf } from '#shared/errors/app-error.ts';
import { parseJson } from '#shared/json/parse-json.ts';
import type { Logger } from '#shared/log/log.ts';
import { exitOf, killGroup, type LaunchProgram } from '#shared/process/run-in-group.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import {
  isAlive,
  parseProcessStat,
  type ProcessIdentity,
  readBootId,
  signalProcess,
} from './process-identity.ts';

/**
 * Programs that write for this daemon (scripts, builders), none of which outlives it: each is the
 * first process of a PID namespace of its own, which the kernel ends as a whole when that process
 * is killed or the daemon is, children in sessions of their own included. It is on record before
 * it runs, so that the next daemon can wait until it is really gone: a process in the middle of a
 * write ends when the write does.
 *
 * What it mounts, it mounts for itself, and goes with it.
 */
export interface ChildSupervisor {
  readonly launch: LaunchProgram;
  /** Ends what an earlier daemon left, and waits until nothing of it runs. */
  endPredecessors(): Promise<void>;
}

export interface ChildSupervisorOptions {
  /** The records' own folder; it goes with the machine's boot or with its files. */
  readonly dir: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** A killed process ends when its system call does; a disk that hangs may keep it for ever. */
const END_LIMIT_MS = 30_000;
/** There is no event for the end of another daemon's child. */
const END_POLL_MS = 20;
/** A stat line has some 300 characters. */
const MAX_STAT_LENGTH = 4096;

/**
 * What goes before the messages of the shell that starts a program, and the status that it has as
 * every shell where it could not be.
 */
const STARTER = 'gnt-child';
/** @returns whether these last lines of a program's output say that it was never started */
export function isStartersWord(lastLine: string | undefined): boolean {
  return lastLine?.startsWith(`${STARTER}: `) ?? false;
}

/**
 * The first process of the namespace. It tells its identity, as the host sees it, and waits for a
 * word that is sent when this is on record; the end of the daemon ends the wait. Names made of `$$`
 * are common in scripts, and every namespace begins to count at 1: the program gets a number that
 * the host has given, where the kernel lets one choose. The first argument is the program's PATH.
 *
 * It is bash: dash drops variables whose names it cannot use itself, such as `OSP_A.B`. `env`
 * removes what bash exports of its own. Messages of bash about the end of the program are dropped;
 * those of `env`, which could not start it, begin with STARTER.
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
/** It reads no file of settings, and takes no functions or options from the environment. */
const SHELL = ['/bin/bash', '--noprofile', '--norc', '-p', '-c'];

/**
 * With these no program outlives the daemon: the kernel kills `unshare` when the daemon ends,
 * `unshare` has its child killed when it ends, and with that child ends the namespace.
 */
const NAMESPACES = ['--pid', '--fork', '--kill-child', '--mount', '--propagation', 'slave'];

const childRecord = z.object({
  pid: z.number(),
  startTicks: z.string(),
  bootId: z.string(),
  command: z.string(),
});
type ChildRecord = z.infer<typeof childRecord>;

export function createChildSupervisor(options: ChildSupervisorOptions): ChildSupervisor {
  return {
    launch: (...program) => launch(options, ...program),
    endPredecessors: async () => {
      for (const name of await listRecords(options.dir)) await endPredecessor(options, name);
    },
  };
}

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
  const child = spawn(starter.command, starter.args, {
    cwd,
    env: { ...env, PATH: SYSTEM_PATH },
    stdio: [...stdio, 'pipe'],
    detached: true,
  });
  const exit = exitOf(child);
  const record = join(dir, `${randomUUID()}.json`);
  try {
    // The fourth of its streams is a socket, as they all are that are called `pipe`.
    const word = child.stdio[3] as Duplex;
    const identity = await readIdentity(word, exit);
    await writeRecord(record, { ...identity, bootId: readBootId(), command });
    forgetLater(record, exit);
    word.end('run\n');
    return {
      child,
      exit: exit.then(([status, signal]) => [status, signal ?? signalOf(status)] as const),
      // The end is that of its first process, so that `unshare` ends when all of the namespace has.
      kill: (signal = 'SIGKILL') =>
        signal === 'SIGKILL' ? signalProcess(identity, signal) : killGroup(child, signal),
    };
  } catch (error) {
    killGroup(child);
    await rm(record, { force: true });
    throw error;
  }
}

/** @throws AppError HOST_PREREQUISITE when the program that starts it could not do so */
async function readIdentity(
  word: Duplex,
  exit: ReturnType<typeof exitOf>,
): Promise<ProcessIdentity> {
  let line = '';
  const ended = exit.then(
    ([status, signal]) => {
      throw cannotStart(`unshare ended with ${signal ?? status}`);
    },
    (error: unknown) => {
      throw cannotStart(messageOf(error), error);
    },
  );
  ended.catch(() => undefined); // told by the race below, as long as that waits
  word.setEncoding('utf8');
  while (!line.includes('\n') && line.length < MAX_STAT_LENGTH) {
    // One argument of 'data', text by the encoding above; `ended` only ever throws.
    const [text] = (await Promise.race([once(word, 'data'), ended])) as [string];
    line += text;
  }
  word.on('error', () => undefined); // it was killed; its exit says so
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

/** Whole or not at all. It is not synced: what it is about goes with the machine's power, too. */
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

function forgetLater(record: string, exit: ReturnType<typeof exitOf>): void {
  const forget = (): void => void rm(record, { force: true }).catch(() => undefined);
  exit.then(forget, forget);
}

/**
 * As shells tell of a signal that ended a program; of a program's own status above 128 likewise.
 */
function signalOf(status: number | null): NodeJS.Signals | null {
  const found = Object.entries(constants.signals).find(([, number]) => number + 128 === status);
  // The names of `os.constants.signals` are those.
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
    const limitMs = clock.monotonicMs() + END_LIMIT_MS;
    while (isAlive(record)) {
      if (clock.monotonicMs() > limitMs) {
        logger.error('child.survives', { pid, command });
        return;
      }
      signalProcess(record, 'SIGKILL');
      await sleep(END_POLL_MS);
    }
  }
  await rm(path, { force: true });
}

/**
 * Returns a command that the kernel kills as soon as this daemon has ended. `launch` of the
 * supervisor additionally waits for the end, at the next start.
 */
export function tieToDaemon(
  command: string,
  args: readonly string[],
): { readonly command: string; readonly args: readonly string[] } {
  return { command: 'setpriv', args: ['--pdeathsig', 'KILL', command, ...args] };
}
