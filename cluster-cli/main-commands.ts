import { writeSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import { systemClock } from '#shared/clock/clock.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { readVersion } from '#shared/paths/read-version.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { startCommandOf } from './client/start-command.ts';
import { createCommand } from './create-command.ts';
import {
  endOptionsAtCommand,
  expandArguments,
  hasSensitiveArguments,
  wantedCommands,
} from './arguments.ts';
import type { Context, Interrupts } from './terminal/context.ts';
import { failureOf } from './failures/failure.ts';
import { isProgramName, type ProgramName, programs } from './programs.ts';
import { renderFailure } from './render/failure-text.ts';
import { sanitizeText } from './render/sanitize.ts';
import {
  chooseHelpColumns,
  createPaint,
  readAppearance,
  type Terminal,
} from './terminal/terminal.ts';
import { errorOfUsage, isHelpShown, refuseUnknownCommand } from './usage.ts';
import { createValueSource } from './values/value-source.ts';

/** The parts of a process that a command uses. */
export interface Host extends Pick<
  NodeJS.Process,
  'argv' | 'env' | 'execPath' | 'execArgv' | 'stdin' | 'stdout' | 'stderr' | 'title'
> {
  /** Descriptor for options with the value `-`; default 0. */
  readonly stdinFd?: number;
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown;
  exit(status: number): void;
}

interface Run {
  readonly host: Host;
  readonly program: string;
  readonly given: readonly string[];
  readonly isDebug: boolean;
  readonly terminal: Terminal;
  command: Command | null;
  exitStatus: number;
}

/** Runs the command of the arguments and ends the process. */
export async function runProgram(host: Host): Promise<void> {
  const { env, argv, stdout, stderr } = host;
  const given = argv.slice(2);
  const run: Run = {
    host,
    program: basename(env['GNT_PROGRAM'] ?? argv[1] ?? 'gnt-instance'),
    given,
    isDebug: given.includes('--debug'),
    terminal: {
      // Node opens stdin on first use. Most commands do not need it.
      get stdin() {
        return host.stdin;
      },
      stdout,
      stderr,
      output: readAppearance(stdout.isTTY, env),
      errors: readAppearance(stderr.isTTY, env),
    },
    command: null,
    exitStatus: 0,
  };
  for (const stream of [stdout, stderr])
    stream.on('error', (error: Error) => endUnwritten(run, error));
  // Hides the arguments from ps. Copies remain only in this process's memory.
  if (hasSensitiveArguments(given)) host.title = `${run.program} ${given[0] ?? ''}`.trim();
  await runReported(run);
  await Promise.all([flush(stdout), flush(stderr)]);
  host.exit(run.exitStatus);
}

/** Ends after a failed write. A closed pipe (`| head`) is not a failure; a full disk is. */
function endUnwritten({ host, terminal, isDebug, exitStatus }: Run, error: Error): void {
  if (systemCodeOf(error) === 'EPIPE') {
    host.exit(exitStatus);
    return;
  }
  const full = systemCodeOf(error) === 'ENOSPC';
  const failure = failureOf(
    new AppError(
      full ? 'DISK_FULL' : 'COMMAND_FAILED',
      `cannot write the output: ${error.message}`,
      {
        hint: 'Changes are complete; free some space and repeat a command that only shows something',
        cause: error,
      },
    ),
  );
  try {
    writeSync(host.stderr.fd, `${renderFailure(failure, terminal.errors, isDebug).join('\n')}\n`);
  } catch {
    // stderr is closed too.
  }
  host.exit(Math.max(exitStatus, failure.exitStatus));
}

async function runReported(run: Run): Promise<void> {
  try {
    await parseAndAct(run);
  } catch (error) {
    const failure = failureOf((await errorOfUsage(error, run.command, run.given)) ?? error);
    run.exitStatus = failure.exitStatus;
    const lines = renderFailure(failure, run.terminal.errors, run.isDebug);
    run.host.stderr.write(`${lines.join('\n')}\n`);
  }
}

async function parseAndAct(run: Run): Promise<void> {
  const { program, given } = run;
  if (!isProgramName(program)) {
    throw new AppError('USAGE', `unknown program '${program}'`, {
      hint: `Programs: ${Object.keys(programs).join(', ')}`,
    });
  }
  const command = await createCommands(run, program);
  run.command = command;
  refuseUnknownCommand(command, given);
  try {
    await command.parseAsync([...expandArguments(endOptionsAtCommand(given, command))], {
      from: 'user',
    });
  } catch (error) {
    if (!isHelpShown(error)) throw error;
  }
}

/** Creates the requested command, or all of them for help and suggestions. */
async function createCommands(run: Run, name: ProgramName): Promise<Command> {
  const { env, stdout } = run.host;
  // Signals have one listener, also if the commands are created twice.
  const interrupts = createInterrupts(run.host);
  const create = (only: readonly string[] | null): Promise<Command> =>
    createCommand(name, createContext(run, only, interrupts), {
      version: readVersion(),
      write: (text) => stdout.write(text),
      // Longer lines are harder to read, and the built help has one width.
      columns: chooseHelpColumns(stdout.columns, env),
    });
  const made = await create(wantedCommands(run.given));
  return made.commands.length > 0 ? made : create(null);
}

function createContext(run: Run, only: readonly string[] | null, interrupts: Interrupts): Context {
  const { host, program, terminal } = run;
  const { env, stdout, stderr } = host;
  const root = resolve(env['GNT_ROOT'] || '/');
  const paths = createRootPaths(root);
  const paint = createPaint(terminal.errors);
  const note = (text: string): void => void stderr.write(`${sanitizeText(text)}\n`);
  return {
    program,
    only,
    self: [host.execPath, ...host.execArgv, host.argv[1] ?? ''],
    terminal,
    clock: systemClock,
    values: createValueSource(host.stdinFd),
    paths,
    client: async () =>
      (await import('./client/node-client.ts')).createNodeClient({
        socketPath: paths.nodedSocket,
        startCommand: startCommandOf(root, env['npm_command'] === 'exec'),
        onStoreAway: (reason) => note(`${reason}; waiting for it`),
      }),
    interrupts,
    print: (text) => void stdout.write(`${text}\n`),
    note,
    warn: (text) => void stderr.write(`${paint('yellow', 'warning:')} ${sanitizeText(text)}\n`),
    setExitStatus(status) {
      run.exitStatus = status;
    },
  };
}

function createInterrupts(host: Host): Interrupts {
  const handlers: (() => void)[] = [];
  const interrupted = (): void => {
    const handler = handlers.at(-1);
    if (handler) {
      handler();
      return;
    }
    host.stderr.write('error[INTERRUPTED]: interrupted\n');
    host.exit(130);
  };
  host.on('SIGINT', interrupted);
  host.on('SIGTERM', interrupted);
  return {
    take(handler) {
      handlers.push(handler);
      return () => {
        const at = handlers.indexOf(handler);
        if (at !== -1) handlers.splice(at, 1);
      };
    },
  };
}

/** Resolves when all written data has left this process. */
async function flush(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((done) => stream.write('', () => done()));
}
