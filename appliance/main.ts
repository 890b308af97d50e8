import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import {
  type ApplianceManifest,
  BUILT_APPLIANCE,
  type BuildProgress,
} from '#shared/contract/appliance-manifest.ts';
import { describeUsers } from '#shared/contract/appliance-choice.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { errorCodes } from '#shared/errors/codes.ts';
import { createRootPaths } from '#shared/paths/root-paths.ts';
import { chooseAptSources, sourcesOfMirror, readAptSources } from './image/apt-sources.ts';
import { buildAppliance } from './image/build.ts';
import {
  importAppliance,
  type ImportedAppliance,
  listImported,
  nameOf,
  removeImported,
} from './image/import.ts';
import { readManifest, verifyAppliance } from './image/manifest.ts';
import { readOwnHooks } from './image/own-hooks.ts';
import { type ApplianceActions, type BuildFlags, createApplianceProgram } from './program.ts';
import { createChosenAppliance } from './use.ts';

const { applianceDir, applianceHooksFile, importedAppliancesDir, nodedSocket } = createRootPaths(
  process.env['GNT_ROOT'] ?? '/',
);
const cacheDir =
  process.env['GNT_CACHE'] ??
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'gnt');
const print = (line: string): boolean => process.stdout.write(`${line}\n`);

/** Value of --hooks that removes the hooks, as in the other programs. */
const NONE = 'none';
/** The former spelling. */
const FORMER_NONE = 'default';

async function buildCommand(flags: BuildFlags, signal: AbortSignal): Promise<void> {
  const tell = (progress: BuildProgress): void => {
    if (flags.progressJson === true) print(JSON.stringify(progress));
    else if (progress.type === 'step') print(progress.text);
  };
  try {
    if (process.getuid?.() !== 0)
      throw new AppError('NOT_ROOT', 'building an appliance needs root', {
        hint: 'Run it as root.',
      });
    const { hooks } = flags;
    if (hooks === FORMER_NONE)
      process.stderr.write(
        `warning: --hooks ${FORMER_NONE} is deprecated: write --hooks ${NONE}\n`,
      );
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
          given: hooks === NONE || hooks === FORMER_NONE ? [] : await readOwnHooks(hooks, signal),
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

async function importCommand(
  source: string,
  flags: { name?: string },
  signal: AbortSignal,
): Promise<void> {
  const name = nameOf(source, flags.name);
  const onWait = (): void => void print('waiting for another import');
  const options = { signal, onWait };
  const { kernelVersion } = await importAppliance(source, name, importedAppliancesDir, options);
  print(`imported as ${name}, intact, kernel ${kernelVersion}: gnt-appliance use ${name}`);
}

async function listCommand(flags: { json?: boolean }): Promise<void> {
  const used = await createChosenAppliance(nodedSocket).read();
  const built = await describeBuilt();
  const listed = [...built, ...(await listImported(importedAppliancesDir))].map((appliance) => ({
    ...appliance,
    used: used === null ? null : appliance.name === used,
  }));
  if (flags.json === true) {
    print(JSON.stringify(listed, null, 2));
    return;
  }
  for (const { name, state, detail, used: isUsed } of listed)
    print(`${isUsed === true ? '*' : ' '} ${name}: ${state}, ${detail}`);
}

/** Returns the built appliance as a list of at most one. */
async function describeBuilt(): Promise<readonly ImportedAppliance[]> {
  const common = { name: BUILT_APPLIANCE, directory: applianceDir };
  try {
    const { kernelVersion } = await verifyAppliance(applianceDir);
    return [{ ...common, state: 'intact', detail: `kernel ${kernelVersion}` }];
  } catch (error) {
    if (isAppError(error, 'APPLIANCE_MISSING')) return [];
    return [{ ...common, state: 'corrupt', detail: messageOf(error) }];
  }
}

async function useCommand(name: string): Promise<void> {
  await createChosenAppliance(nodedSocket).choose(name);
  print(`installations use the appliance ${name}`);
}

/** Refuses to remove a used appliance, since its next installation would fail. */
async function removeCommand(given: string, signal: AbortSignal): Promise<void> {
  const name = nameOf(given, given);
  const users = await createChosenAppliance(nodedSocket).users(name);
  if (users.cluster || users.operatingSystems.length > 0 || users.instances.length > 0) {
    throw new AppError('VALIDATION', `appliance '${name}' is used by ${describeUsers(users)}`, {
      hint: 'Stop using it first: gnt-appliance use built, gnt-os modify --appliance none OS, gnt-instance modify --appliance none INSTANCE',
    });
  }
  const onWait = (): void => void print('waiting for an import');
  await removeImported(name, importedAppliancesDir, { signal, onWait });
  print(`removed ${name}`);
}

async function verifyCommand(): Promise<void> {
  const manifest = await verifyAppliance(applianceDir);
  print(`intact: ${describe(manifest)}`);
}

function createActions(signal: AbortSignal): ApplianceActions {
  return {
    build: (flags) => buildCommand(flags, signal),
    info: infoCommand,
    verify: verifyCommand,
    import: (source, flags) => importCommand(source, flags, signal),
    list: listCommand,
    use: useCommand,
    remove: (name) => removeCommand(name, signal),
  };
}

function explain(error: unknown, program: Command, signal: AbortSignal): number {
  const complain = (text: string): boolean => process.stderr.write(`${text}\n`);
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    complain(`error[USAGE]: ${error.message.replace(/^error: /, '')}`);
    complain(`hint: See gnt-appliance --help`);
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
const program = createApplianceProgram(createActions(interruption.signal));
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = explain(error, program, interruption.signal);
}
