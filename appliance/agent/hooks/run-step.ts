import { AppError, isAppError, systemCodeOf } from '#shared/errors/app-error.ts';
import type { StageReporter } from '../report/stage.ts';
import { applyUser, authorizeKeys } from './accounts.ts';
import {
  download,
  makeDirectory,
  setEnvironment,
  setHostname,
  setModules,
  setSysctl,
  setTimesyncd,
  writeDns,
  writeFile,
  writeOverride,
} from './content-actions.ts';
import { deleteEntity, ensureEntity } from './entities.ts';
import type { StepFields } from './fields.ts';
import { applyPackages } from './packages.ts';
import { applyLayout } from './layout.ts';
import type { RootFiles } from './root-files.ts';
import { runInRoot, type StepRoot } from './run-in-root.ts';

export interface StepWorld {
  readonly root: StepRoot;
  readonly files: RootFiles;
  readonly reporter: StageReporter;
  /** The disk that an image overwrites later, or null. */
  readonly replacedDisk: string | null;
}

interface Action {
  readonly name: string;
  run(): Promise<void> | void;
}

/**
 * Runs the fields of a step in yip's order.
 * @throws AppError HOOK_FAILED that names the field and its position, without the document's paths
 * and texts
 */
export async function runStep(fields: StepFields, world: StepWorld): Promise<void> {
  for (const action of listActions(fields, world)) {
    try {
      await action.run();
    } catch (error) {
      throw new AppError('HOOK_FAILED', `${action.name}: ${reasonOf(error)}`, {
        cause: error,
        hint: isAppError(error) ? error.hint : undefined,
      });
    }
  }
}

function listActions(
  fields: StepFields,
  { root, files, reporter, replacedDisk }: StepWorld,
): Action[] {
  const { dns, hostname, layout, packages, systemctl } = fields;
  const each = <T>(name: string, items: readonly T[], run: (item: T) => Promise<void> | void) =>
    items.map((item, index) => ({ name: `${name} ${index + 1}`, run: () => run(item) }));
  const one = (name: string, run: (() => Promise<void>) | null): Action[] =>
    run ? [{ name, run }] : [];
  const log = (line: string): void => reporter.log(line);
  const program = (argv: readonly string[]) => runProgram(root, argv, reporter);
  const ask = (argv: readonly string[]) => readProgram(root, argv);
  const packageWorld = {
    files,
    environment: root.environment,
    log,
    run: (argv: readonly string[], more: Readonly<Record<string, string>>) =>
      runProgram({ ...root, environment: { ...root.environment, ...more } }, argv, reporter),
  };
  return [
    ...one('dns', dns ? () => writeDns(files, dns) : null),
    ...each('downloads', fields.downloads, (item) => download(files, item)),
    ...each('ensure_entities', fields.ensure_entities, (item) => ensureEntity(files, item)),
    ...each('directories', fields.directories, (item) => makeDirectory(files, item)),
    ...each('files', fields.files, (item) => writeFile(files, item)),
    ...each('commands', fields.commands, (line) => program(['/bin/sh', '-c', line])),
    ...each('delete_entities', fields.delete_entities, (item) => deleteEntity(files, item)),
    ...one('hostname', hostname === undefined ? null : () => setHostname(files, hostname)),
    ...one('sysctl', () => setSysctl(files, fields.sysctl)),
    // By name, so that ids are the same in every installation.
    ...each('users', Object.entries(fields.users).sort(byKey), ([name, user]) =>
      applyUser(files, name, user, log),
    ),
    ...each('authorized_keys', Object.entries(fields.authorized_keys), ([name, keys]) =>
      authorizeKeys(files, name, keys),
    ),
    ...one('modules', () => setModules(files, fields.modules)),
    ...one('timesyncd', () => setTimesyncd(files, fields.timesyncd)),
    ...(['enable', 'disable', 'mask'] as const).flatMap((verb) =>
      each(`systemctl ${verb}`, systemctl?.[verb] ?? [], (unit) =>
        program(['systemctl', verb, '--', unit]),
      ),
    ),
    ...each('systemctl start', systemctl?.start ?? [], (unit) =>
      log(
        `systemctl start ${unit}: skipped, no service runs during installation; an enabled unit starts at boot`,
      ),
    ),
    ...each('systemctl overrides', systemctl?.overrides ?? [], (item) =>
      writeOverride(files, item.service, item.name, item.content),
    ),
    ...one('environment', () => setEnvironment(files, fields)),
    ...one('systemd_firstboot', () => runFirstboot(fields.systemd_firstboot, program)),
    ...one('layout', layout ? () => applyLayout(layout, { replacedDisk, log, run: ask }) : null),
    ...one('packages', packages ? () => applyPackages(packages, packageWorld) : null),
  ];
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** Passes settings as yip does: `true` is a switch. */
async function runFirstboot(
  settings: StepFields['systemd_firstboot'],
  program: (argv: readonly string[]) => Promise<void>,
): Promise<void> {
  const args = Object.entries(settings).map(([key, value]) =>
    value === 'true' ? `--${key.toLowerCase()}` : `--${key.toLowerCase()}=${value}`,
  );
  if (args.length > 0) await program(['systemd-firstboot', ...args.sort()]);
}

/** @returns the last line that the program printed */
async function readProgram(root: StepRoot, argv: readonly string[]): Promise<string> {
  let last = '';
  const end = await runInRoot(root, argv, (line, stream) => {
    if (stream === 'stdout' && line.trim() !== '') last = line.trim();
  });
  if (end.isSuccess) return last;
  throw new AppError('HOOK_FAILED', [`the script ${end.how}`, ...end.lastLines].join('\n'));
}

async function runProgram(
  root: StepRoot,
  argv: readonly string[],
  reporter: StageReporter,
): Promise<void> {
  const log: StageReporter['log'] = (line, stream) => reporter.log(line, stream);
  const end = await runInRoot(root, argv, log, reporter.isFull);
  if (end.isSuccess) return;
  throw new AppError('HOOK_FAILED', [end.how, ...end.lastLines].join('\n'), {
    hint: 'Read the whole output: gnt-instance log NAME',
  });
}

/**
 * Returns a reason without paths, which messages of Node and of the walk contain and which belong
 * to the document.
 */
function reasonOf(error: unknown): string {
  if (isAppError(error)) {
    if (error.code === 'PACKAGE_INVALID') return 'a part of the path is not a folder';
    return error.code === 'NOT_FOUND' ? 'a folder of the path does not exist' : error.message;
  }
  return systemCodeOf(error) ?? (error instanceof Error ? error.name : 'unknown reason');
}
