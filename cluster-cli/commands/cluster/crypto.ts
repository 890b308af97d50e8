import { rm } from 'node:fs/promises';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import type { Context } from '../../terminal/context.ts';
import { confirmLoss, type ForceOptions } from '../instance/change.ts';

export interface RenewOptions {
  readonly skip?: string;
  readonly json?: boolean;
}

/** `gnt-cluster renew-crypto`. @throws AppError, CommandFailure */
export async function runRenewCrypto(context: Context, options: RenewOptions): Promise<void> {
  const skip = (options.skip ?? '').split(',').filter((node) => node !== '');
  const client = await context.client();
  const { nodes, skipped } = await client.renewCrypto(skip);
  if (options.json === true) {
    context.print(JSON.stringify({ nodes, skipped }, null, 2));
    return;
  }
  context.note(`the key of the cluster is another one now, on ${nodes.join(', ')}`);
  for (const node of skipped) {
    context.note(
      `${node} was left behind: copy var/lib/gnt/cluster.key there, and run gnt-cluster init --store URL --cluster-key FILE`,
    );
  }
}

/**
 * `gnt-cluster accept-records`: this node forgets which records it has seen, and takes them as they
 * are at its next start.
 * @throws AppError CONFLICT while gnt-noded runs; NOT_SUPPORTED where there is no common store
 */
export async function runAcceptRecords(context: Context, options: ForceOptions): Promise<void> {
  const { storeChoiceFile, seenRecordsFile } = context.paths;
  const { readStoreChoice } = await import('#shared/store/store-choice.ts');
  if ((await readStoreChoice(context.paths)) === undefined) {
    throw new AppError(
      'NOT_SUPPORTED',
      `there is no ${storeChoiceFile}: this node has no common store`,
      {
        hint: 'a store of its own is restored as it is: stop gnt-noded, copy the file, start it',
      },
    );
  }
  if (await isRunning(context)) {
    throw new AppError('CONFLICT', 'gnt-noded runs, and has seen the newer records', {
      hint: 'stop it first: instances go on',
    });
  }
  await confirmLoss(
    context,
    'This node will take older records than it has seen, trust that was revoked and nodes that were removed among them.',
    options,
  );
  for (const suffix of ['', '-wal', '-shm'])
    await rm(`${seenRecordsFile}${suffix}`, { force: true });
  context.note('start gnt-noded: it takes the records as they are now');
}

async function isRunning(context: Context): Promise<boolean> {
  try {
    await (await context.client()).node();
    return true;
  } catch (error) {
    if (isAppError(error, 'NODED_UNREACHABLE')) return false;
    throw error;
  }
}
