import { AppError } from '#shared/errors/app-error.ts';
import { sanitizeLine } from '../../render/sanitize.ts';
import type { Context } from '../../terminal/context.ts';
import { holdInterrupt, nameSome, refusalOf } from '../between-jobs.ts';
import { composeAdd } from '../instance/add.ts';
import { submitAndWatch } from '../submit.ts';
import type { ImportOptions } from './backup.ts';

interface Imported {
  readonly path: string;
  readonly name: string | null;
  readonly losses: readonly string[];
  /** Null: imported, or with `--dry-run` importable. */
  readonly error: string | null;
}

/**
 * Imports every export in a directory. A failure does not stop the others.
 * @param directory absolute
 * @throws AppError EXPORT_NOT_FOUND without exports; COMMAND_FAILED after the last export
 */
export async function runImportAll(
  context: Context,
  directory: string,
  { json, ...options }: ImportOptions,
): Promise<void> {
  const client = await context.client();
  const exports = await client.ask('GET /v1/exports', { query: { directory } });
  if (exports.length === 0)
    throw new AppError('EXPORT_NOT_FOUND', `${directory} has no exports`, {
      hint: 'Each export is a folder with a config.ini',
    });
  // stdout is for the list of --json.
  const noting = { ...context, print: context.note };
  const all: Imported[] = [];
  let begun = 0;
  using between = holdInterrupt(context);
  try {
    for (const { path, instance: name, losses, problem } of exports) {
      between.throwIfInterrupted();
      begun += 1;
      const shown = sanitizeLine(name ?? path);
      context.note(`${shown}: from ${sanitizeLine(path)}`);
      for (const loss of losses) context.note(`  lost: ${sanitizeLine(loss)}`);
      const error =
        name === null
          ? problem
          : await failureOf(() => importOne(noting, name, { ...options, srcDir: path }));
      if (error !== null) context.warn(`${shown}: ${sanitizeLine(error)}`);
      all.push({ path, name, losses, error });
    }
  } catch (error) {
    const rest = exports.slice(begun).map(({ instance, path }) => instance ?? path);
    if (rest.length > 0) context.note(`not imported: ${sanitizeLine(nameSome(rest))}`);
    throw error;
  }
  if (json) context.print(JSON.stringify(all, null, 2));
  const failed = all.filter(({ error }) => error !== null);
  const done = options.dryRun ? 'can be imported' : options.submit ? 'submitted' : 'imported';
  context.note(`${all.length - failed.length} of ${all.length} export(s) ${done}`);
  if (failed.length === 0) return;
  throw new AppError(
    'COMMAND_FAILED',
    `${failed.length} of ${all.length} export(s) failed: ${failed.map(({ name, path }) => name ?? path).join(', ')}`,
    {
      hint: 'Read the reasons above, then import these exports by name: gnt-backup import --src-dir FOLDER NAME',
    },
  );
}

async function importOne(context: Context, name: string, options: ImportOptions): Promise<void> {
  const opcode = await composeAdd(context, name, { ...options, install: true });
  await submitAndWatch(context, { ...opcode, importFrom: options.srcDir }, options);
}

/** Returns the reason of a refusal or a failure, or null. */
async function failureOf(act: () => Promise<void>): Promise<string | null> {
  try {
    await act();
    return null;
  } catch (error) {
    return refusalOf(error);
  }
}
