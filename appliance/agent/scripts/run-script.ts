import type { Readable, Writable } from 'node:stream';
import { AppError } from '#shared/errors/app-error.ts';
import type { StageReporter } from '../report/stage.ts';
import { type Confinement, runConfined } from './confine.ts';

export interface ScriptOptions {
  readonly confinement: Confinement;
  /** Path inside of the OS definition, which is also the working directory. */
  readonly directory: string;
  readonly path: string;
  readonly args?: readonly string[];
  readonly stdin?: Readable;
  /** Receives the output of an export script, instead of the log. */
  readonly stdout?: Writable;
  readonly environment: Readonly<Record<string, string>>;
  readonly reporter: StageReporter;
}

/**
 * Runs an OS script as root, confined, with exactly the given environment. All its processes have
 * ended afterwards.
 * @throws AppError SCRIPT_FAILED with its status and its last lines
 */
export async function runScript(options: ScriptOptions): Promise<void> {
  const { confinement, directory, path, environment, reporter, stdin, stdout } = options;
  const end = await runConfined(
    confinement,
    { path: '/', proc: '/proc' },
    ['/usr/bin/env', '-C', directory, `./${path}`, ...(options.args ?? [])],
    environment,
    (line, stream) => reporter.log(line, stream),
    { stdin, stdout, isFull: reporter.isFull },
  );
  if (end.isSuccess) return;
  // Without its interpreter, env says that the script itself does not exist. The script is there:
  // the definition was checked.
  const lacksInterpreter =
    end.status === 127 &&
    end.lastLines.some((line) => /^\S*env: /.test(line) && line.includes(path));
  throw new AppError(
    'SCRIPT_FAILED',
    [`OS script ${path} ${end.how}`, ...end.lastLines].join('\n'),
    {
      hint: lacksInterpreter
        ? 'The interpreter in the first line of the script is missing in the appliance. Write the script for /bin/sh, or use an appliance that has it.'
        : 'Read the whole output: gnt-instance log NAME',
    },
  );
}
