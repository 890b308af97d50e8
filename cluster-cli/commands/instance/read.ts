import { AppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { type InstanceRow, instanceFields } from '../../fields/instance-fields.ts';
import { renderHookBook } from '../../render/hook-book.ts';
import { renderInstanceInfo } from '../../render/instance-info.ts';
import { suggest } from '#shared/errors/suggest.ts';
import { type ListOptions, printFields, printList } from '../list.ts';

/** `gnt-instance list [NAME…]`. @throws AppError, CommandFailure */
export async function runList(
  context: Context,
  names: readonly string[],
  options: ListOptions,
): Promise<void> {
  const client = await context.client();
  const [instances, orphans] = await Promise.all([client.instances(), client.orphans()]);
  const items: readonly InstanceRow[] = [
    ...instances,
    ...orphans.map((orphan) => ({ ...orphan, status: 'ERROR_orphan' as const })),
  ];
  printList(
    context,
    {
      table: instanceFields,
      items,
      nameOf: ({ name }) => name,
      names,
      notFound: (name) =>
        instanceNotFound(
          name,
          items.map((item) => item.name),
        ),
      defaultSort: 'name',
    },
    options,
  );
}

export function runListFields(context: Context, options: { readonly json?: boolean }): void {
  printFields(context, instanceFields, options);
}

/**
 * `gnt-instance info [NAME…|--all]`. With one name `--json` is its record, else an array.
 * @throws AppError, CommandFailure
 */
export async function runInfo(
  context: Context,
  names: readonly string[],
  options: { readonly all?: boolean; readonly json?: boolean },
): Promise<void> {
  if (names.length === 0 && !options.all) {
    throw new AppError(
      'USAGE',
      'Please use the --all option if you want info about all instances',
      {
        hint: 'or name the instances',
      },
    );
  }
  const client = await context.client();
  const infos =
    names.length === 0
      ? await client.instances()
      : await Promise.all(names.map((name) => client.instance(name)));
  if (options.json) {
    const [first] = infos;
    context.print(JSON.stringify(names.length === 1 ? first : infos, null, 2));
    return;
  }
  context.print(infos.map((info) => renderInstanceInfo(info).join('\n')).join('\n\n'));
}

/** `gnt-instance hooks NAME`. @throws AppError, CommandFailure */
export async function runHooks(
  context: Context,
  name: string,
  options: { readonly json?: boolean },
): Promise<void> {
  const book = await (await context.client()).hooks(name);
  if (options.json) context.print(JSON.stringify(book, null, 2));
  else if (book.stages.length + book.remarks.length === 0)
    context.print(`no hooks are run for ${name}`);
  else context.print(renderHookBook(book).join('\n'));
}

function instanceNotFound(name: string, known: readonly string[]): AppError {
  const near = suggest(name, known);
  return new AppError('INSTANCE_NOT_FOUND', `instance '${name}' does not exist`, {
    hint: near ? `did you mean ${near}?` : 'gnt-instance list shows what there is',
    details: { name },
  });
}
