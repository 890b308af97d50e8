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

const { env, argv, stdout, stderr } = process;
const program = basename(env['GNT_PROGRAM'] ?? argv[1] ?? 'gnt-instance');
const given = argv.slice(2);
const isDebug = given.includes('--debug');

const terminal: Terminal = {
  get stdin() {
    return process.stdin;
  },
  stdout,
  stderr,
  output: readAppearance(stdout.isTTY, env),
  errors: readAppearance(stderr.isTTY, env),
};
let exitStatus = 0;
let command: Command | null = null;

/** Does what the arguments say and ends the process. */
export async function runProgram(): Promise<void> {
  for (const stream of [stdout, stderr]) stream.on('error', endUnwritten);
  // Wipes the arguments from what ps shows; the memory behind it is this process's own.
  if (hasSensitiveArguments(given)) process.title = `${program} ${given[0] ?? ''}`.trim();
  await main();
  await Promise.all([flush(stdout), flush(stderr)]);
  process.exit(exitStatus);
}

/** A reader that went away (`| head`) is no failure; a full disk behind a `>` is one. */
function endUnwritten(error: Error): never {
  if (systemCodeOf(error) === 'EPIPE') process.exit(exitStatus);
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
    writeSync(stderr.fd, `${renderFailure(failure, terminal.errors, isDebug).join('\n')}\n`);
  } catch {
    // stderr is gone too.
  }
  process.exit(Math.max(exitStatus, failure.exitStatus));
}

async function main(): Promise<void> {
  try {
    await run();
  } catch (error) {
    const failure = failureOf(errorOfUsage(error, command, given) ?? error);
    exitStatus = failure.exitStatus;
    const lines = renderFailure(failure, terminal.errors, isDebug);
    stderr.write(`${lines.join('\n')}\n`);
  }
}

async function run(): Promise<void> {
  if (!isProgramName(program)) {
    throw new AppError('USAGE', `unknown program '${program}'`, {
      hint: `Programs: ${Object.keys(programs).join(', ')}`,
    });
  }
  command = await createCommands(program);
  refuseUnknownCommand(command, given);
  try {
    await command.parseAsync([...expandArguments(endOptionsAtCommand(given, command))], {
      from: 'user',
    });
  } catch (error) {
    if (!isHelpShown(error)) throw error;
  }
}

/** Makes the command that is asked for; all of them for help and suggestions. */
async function createCommands(name: ProgramName): Promise<Command> {
  const create = (only: readonly string[] | null): Promise<Command> =>
    createCommand(name, createContext(only), {
      version: readVersion(),
      write: (text) => stdout.write(text),
      // Longer lines are harder to read, and would have to be made anew for each width.
      columns: chooseHelpColumns(stdout.columns, env),
    });
  const made = await create(wantedCommands(given));
  return made.commands.length > 0 ? made : create(null);
}

function createContext(only: readonly string[] | null): Context {
  const root = resolve(env['GNT_ROOT'] || '/');
  const paths = createRootPaths(root);
  const paint = createPaint(terminal.errors);
  const note = (text: string): void => void stderr.write(`${text}\n`);
  return {
    program,
    only,
    self: [process.execPath, ...process.execArgv, argv[1] ?? ''],
    terminal,
    clock: systemClock,
    values: createValueSource(),
    paths,
    client: async () =>
      (await import('./client/node-client.ts')).createNodeClient({
        socketPath: paths.nodedSocket,
        startCommand: startCommandOf(root, env['npm_command'] === 'exec'),
        onStoreAway: (reason) => note(`${reason}; waiting for it`),
      }),
    interrupts: createInterrupts(),
    print: (text) => void stdout.write(`${text}\n`),
    note,
    warn: (text) => note(`${paint('yellow', 'warning:')} ${sanitizeText(text)}`),
    setExitStatus(status) {
      exitStatus = status;
    },
  };
}

function createInterrupts(): Interrupts {
  const handlers: (() => void)[] = [];
  const interrupted = (): void => {
    const handler = handlers.at(-1);
    if (handler) {
      handler();
      return;
    }
    stderr.write('error[INTERRUPTED]: interrupted\n');
    process.exit(130);
  };
  process.on('SIGINT', interrupted);
  process.on('SIGTERM', interrupted);
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

/** Resolves when what was written has left this process. */
async function flush(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((done) => stream.write('', () => done()));
}
