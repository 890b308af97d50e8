import { resolve } from 'node:path';
import type { ExportInfo } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { Context } from '../../terminal/context.ts';
import { formatTime } from '../../render/format.ts';
import type { FieldTable } from '../../render/select.ts';
import { type AddOptions, composeAdd } from '../instance/add.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';
import { type ListOptions, printFields, printList } from '../list.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';

export interface ExportOptions extends SubmitOptions {
  /** Seconds. */
  readonly shutdownTimeout?: number;
  /** Seconds. */
  readonly installTimeout?: number;
}

export interface ImportOptions extends Omit<AddOptions, 'install'> {
  readonly srcDir?: string;
}

export async function runExport(
  context: Context,
  name: string,
  options: ExportOptions,
): Promise<void> {
  const { shutdownTimeout, installTimeout } = options;
  const job = await submitAndWatch(
    context,
    {
      opcode: 'BACKUP_EXPORT',
      name,
      shutdownTimeoutS: shutdownTimeout,
      installTimeoutS: installTimeout,
    },
    options,
  );
  if (job !== null && !options.json) context.note(`instance ${name} exported`);
}

/** @throws AppError USAGE without a name, or with a name and `--all` */
export async function runImports(
  context: Context,
  name: string | undefined,
  options: ImportOptions & { readonly all?: string },
): Promise<void> {
  const { all, ...others } = options;
  // The directory of an unset variable would be the current directory.
  if (all === '')
    throw new AppError('USAGE', 'option --all: the name of the directory is empty', {
      hint: 'gnt-backup import --all /srv/ganeti/export',
    });
  if (all !== undefined && name === undefined && others.srcDir === undefined)
    await (await import('./import-all.ts')).runImportAll(context, resolve(all), others);
  else if (name !== undefined && all === undefined) await runImport(context, name, others);
  else
    throw new AppError('USAGE', 'import takes either the name of one instance or --all', {
      hint: 'gnt-backup import web1.example.com, or gnt-backup import --all /srv/ganeti/export',
    });
}

async function runImport(context: Context, name: string, options: ImportOptions): Promise<void> {
  const opcode = await composeAdd(context, name, { ...options, install: true });
  const importFrom = options.srcDir === undefined ? name : pathOrName(options.srcDir);
  const job = await submitAndWatch(context, { ...opcode, importFrom }, options);
  if (job !== null && !options.json) context.note(`instance ${name} is imported`);
}

/** Resolves paths that begin with a dot. Other texts are names or absolute paths. */
function pathOrName(text: string): string {
  return /^\.{1,2}(\/|$)/.test(text) ? resolve(text) : text;
}

export async function runBackupRemove(
  context: Context,
  name: string,
  options: ForceOptions,
): Promise<void> {
  await confirmLoss(context, `This removes the export of ${name}.`, options);
  const job = await submitAndWatch(context, { opcode: 'BACKUP_REMOVE', name }, options);
  if (job !== null && !options.json) context.note(`export of ${name} removed`);
}

export async function runBackupList(context: Context, options: ListOptions): Promise<void> {
  const client = await context.client();
  printList(
    context,
    {
      table: exportFields,
      items: await client.ask('GET /v1/exports'),
      nameOf: ({ name }) => name,
      names: [],
      notFound: (name) =>
        new AppError('EXPORT_NOT_FOUND', `export '${name}' does not exist`, {
          hint: 'gnt-backup list shows the exports of this node',
        }),
      defaultSort: 'name',
    },
    options,
  );
}

export function runBackupListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, exportFields, options);
}

export const exportFields: FieldTable<ExportInfo> = {
  defaults: ['name', 'os', 'size', 'ctime', 'problem'],
  fields: [
    {
      name: 'name',
      title: 'Export',
      kind: 'text',
      description: 'Name of the exported instance',
      get: ({ name }) => name,
    },
    {
      name: 'os',
      title: 'OS',
      kind: 'text',
      description: 'OS definition that imports it',
      get: ({ osType }) => osType,
    },
    {
      name: 'size',
      title: 'Size',
      kind: 'size',
      description: 'Size of all dumps',
      get: ({ sizeBytes }) => sizeBytes / MIB,
    },
    {
      name: 'ctime',
      title: 'Time',
      kind: 'text',
      description: 'Time of the export',
      get: ({ createdAtMs }) => formatTime(createdAtMs),
    },
    {
      name: 'path',
      title: 'Path',
      kind: 'text',
      description: 'Directory on the node',
      get: ({ path }) => path,
    },
    {
      name: 'losses',
      title: 'Losses',
      kind: 'list',
      description: 'Settings in an export of Ganeti that an import does not keep',
      get: ({ losses }) => losses,
    },
    {
      name: 'problem',
      title: 'Problem',
      kind: 'text',
      description: 'Why it cannot be imported',
      get: ({ problem }) => problem,
    },
  ],
};
