import { AppError } from '#shared/errors/app-error.ts';
import { snapshotFields } from '../../fields/other-fields.ts';
import type { Context } from '../../terminal/context.ts';
import { type ListOptions, printList } from '../list.ts';
import { submitAndWatch, type SubmitOptions } from '../submit.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';

export async function runSnapshot(
  context: Context,
  name: string,
  snapshot: string,
  options: SubmitOptions & { readonly copy?: true },
): Promise<void> {
  const job = await submitAndWatch(
    context,
    { opcode: 'INSTANCE_SNAPSHOT', name, snapshot, ...(options.copy && { copy: true }) },
    options,
  );
  if (job !== null && !options.json) context.note(`snapshot ${snapshot} of ${name} created`);
}

export async function runListSnapshots(
  context: Context,
  name: string,
  options: ListOptions,
): Promise<void> {
  const client = await context.client();
  const { snapshots } = await client.ask('GET /v1/instances/{name}', { name });
  const notFound = (wanted: string): AppError =>
    new AppError('NOT_FOUND', `'${name}' has no snapshot '${wanted}'`, {
      hint: `gnt-instance list-snapshots ${name}`,
    });
  printList(
    context,
    {
      table: snapshotFields,
      items: snapshots,
      nameOf: (one) => one.name,
      names: [],
      notFound,
      defaultSort: 'taken',
    },
    options,
  );
}

export async function runRestoreSnapshot(
  context: Context,
  name: string,
  snapshot: string,
  options: ForceOptions,
): Promise<void> {
  const what = `This restores the disks of ${name} from snapshot ${snapshot}. Later data is lost.`;
  await confirmLoss(context, what, options);
  const job = await submitAndWatch(
    context,
    { opcode: 'INSTANCE_RESTORE', name, snapshot },
    options,
  );
  if (job !== null && !options.json)
    context.note(`disks of ${name} restored from snapshot ${snapshot}`);
}

export async function runRemoveSnapshot(
  context: Context,
  name: string,
  snapshot: string,
  options: ForceOptions,
): Promise<void> {
  await confirmLoss(context, `This removes snapshot ${snapshot} of ${name}.`, options);
  const job = await submitAndWatch(
    context,
    { opcode: 'INSTANCE_REMOVE_SNAPSHOT', name, snapshot },
    options,
  );
  if (job !== null && !options.json) context.note(`snapshot ${snapshot} of ${name} removed`);
}
