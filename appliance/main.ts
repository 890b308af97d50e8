import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import type { ApplianceManifest, BuildProgress } from '#shared/contract/appliance-manifest.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { errorCodes } from '#shared/errors/codes.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { chooseAptSources, sourcesOfMirror } from './image/apt-sources.ts';
import { readAptSources } from './image/apt-source-files.ts';
import { buildAppliance } from './image/build.ts';
import { readManifest, verifyAppliance } from './image/manifest.ts';
import { readOwnHooks } from './image/own-hooks.ts';

const { applianceDir, applianceHooksFile } = createRootPaths(process.env['GNT_ROOT'] ?? '/');
const cacheDir =
  process.env['GNT_CACHE'] ??
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'gnt');
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

interface BuildFlags {
  readonly progressJson?: boolean;
  readonly force?: boolean;
  readonly mirror?: string;
  readonly hooks?: string;
}

/** Value of --hooks that takes hooks away, as in the other programs. */
const NO_HOOKS = 'default';

async function buildCommand(flags: BuildFlags, signal: AbortSignal): Promise<void> {
  const tell = (progress: BuildProgress): void => {
    if (flags.progressJson === true) print(JSON.stringify(progress));
    else if (progress.type === 'step') print(progress.text);
  };
  try {
    if (process.getuid?.() !== 0)
      throw new AppError('NOT_ROOT', 'building an appliance needs root', {
        hint: 'run it as root',
      });
    const { hooks } = flags;
    const manifest = await buildAppliance({
      applianceDir,
      cacheDir,
      mirror: {
        sources:
          flags.mirror === undefined
            ? chooseAptSources(readAptSources())
            : sourcesOfMirror(flags.mirror),
        proxyEnvironment: readProxyEnvironment(),
      },
      nodePath: process.execPath,
      hooks: {
        keptIn: applianceHooksFile,
        ...(hooks !== undefined && {
          given: hooks === NO_HOOKS ? [] : await readOwnHooks(hooks, signal),
        }),
      },
      force: flags.force === true,
      step: (text) => tell({ type: 'step', text }),
      signal,
    });
    tell({ type: 'done', directory: applianceDir });
    if (flags.progressJson !== true) print(`done: ${describe(manifest)}`);
  } catch (error) {
    if (flags.progressJson === true && isAppError(error))
      tell({
        type: 'error',
        code: error.code,
        message: error.message,
        hint: error.hint,
      });
    throw error;
  }
}

function readProxyEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      /^(https?|ftp|no|all)_proxy$/i.test(name) && value !== undefined ? [[name, value]] : [],
    ),
  );
}

function describe(manifest: ApplianceManifest): string {
  const files = [manifest.kernel, manifest.initrd, manifest.root];
  const sizes = files
    .map((file) => `${file.name} ${(file.sizeBytes / 1e6).toFixed(0)} MB`)
    .join(', ');
  return `${applianceDir}, kernel ${manifest.kernelVersion}, ${sizes}`;
}

async function infoCommand(flags: { json?: boolean }): Promise<void> {
  const manifest = await readManifest(applianceDir);
  if (flags.json === true) {
    print(JSON.stringify({ directory: applianceDir, ...manifest }, null, 2));
    return;
  }
  print(`Directory: ${applianceDir}`);
  print(`Architecture: ${manifest.architecture}`);
  print(`Kernel: ${manifest.kernelVersion}`);
  print(`Newest package: ${manifest.sourceDate}`);
  print(`Memory: ${manifest.memoryMiB} MiB`);
  for (const file of [manifest.kernel, manifest.initrd, manifest.root])
    print(`File: ${file.name}, ${file.sizeBytes} bytes, SHA-256 ${file.sha256}`);
  print(`Packages: ${manifest.packages.length}`);
  print(`Hooks: ${manifest.hooks.length}`);
  for (const hook of manifest.hooks) print(`Hook: ${hook.name}, SHA-256 ${hook.sha256}`);
  print(`Inputs: ${manifest.inputsHash}`);
}

async function verifyCommand(): Promise<void> {
  const manifest = await verifyAppliance(applianceDir);
  print(`intact: ${describe(manifest)}`);
}

function createProgram(signal: AbortSignal): Command {
  const program = new Command('gnt-appliance')
    .description('Build and check the read-only virtual machine that installs instances')
    .option('--debug', 'add the trace to errors')
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  program
    .command('build')
    .description(
      'put an intact appliance under the root: from the build cache, or built from Debian packages',
    )
    .option('--progress-json', 'print progress as JSON, one object a line')
    .option('--force', 'build anew, whatever the cache has')
    .option('--mirror <url>', "Debian mirror; default: the host's own")
    .option(
      '--hooks <folder>',
      'hook documents (*.yaml) that become part of it and of every later build; "default" takes them away',
    )
    .action((flags: BuildFlags) => buildCommand(flags, signal));
  program
    .command('info')
    .description('show what the appliance is made of')
    .option('--json', 'print the manifest')
    .action((flags: { json?: boolean }) => infoCommand(flags));
  program
    .command('verify')
    .description('compare the files of the appliance with its manifest')
    .action(() => verifyCommand());
  return program;
}

/** Prints a failure as all programs do, and returns the exit status. */
function explain(error: unknown, program: Command, signal: AbortSignal): number {
  const complain = (text: string): boolean => process.stderr.write(`${text}\n`);
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    complain(`error[USAGE]: ${error.message.replace(/^error: /, '')}`);
    complain(`hint: see gnt-appliance --help`);
    return errorCodes.USAGE;
  }
  if (signal.aborted) {
    complain('error[INTERRUPTED]: interrupted; nothing was changed');
    return errorCodes.INTERRUPTED;
  }
  const code = isAppError(error) ? error.code : 'INTERNAL';
  complain(`error[${code}]: ${messageOf(error)}`);
  if (isAppError(error) && error.hint !== undefined) complain(`hint: ${error.hint}`);
  if (program.opts<{ debug?: boolean }>().debug === true && error instanceof Error)
    complain(error.stack ?? '');
  return errorCodes[code];
}

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(name, () => interruption.abort(new AppError('INTERRUPTED', `interrupted by ${name}`)));
const program = createProgram(interruption.signal);
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = explain(error, program, interruption.signal);
}
