import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pause } from '#shared/abort/until.ts';
import { type CryptoRenewed, cryptoSteps } from '#shared/contract/api.ts';
import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { syncPath } from '#shared/files/durable.ts';
import type { Context } from '../../terminal/context.ts';
import { runRenewIdentityKeys } from './identity.ts';
import { confirmLoss, type ForceOptions } from '../confirm-loss.ts';

export interface RenewOptions {
  readonly newIdentityKeys?: boolean;
  /** Seconds. */
  readonly overlap?: number;
  readonly skip?: string;
  readonly json?: boolean;
}

export async function runRenewCrypto(context: Context, options: RenewOptions): Promise<void> {
  if (options.newIdentityKeys === true) {
    if (options.skip !== undefined)
      throw new AppError('USAGE', '--skip and --new-identity-keys exclude each other', {
        hint: 'Run the command twice, once with each option',
      });
    await runRenewIdentityKeys(context, options);
    return;
  }
  if (options.overlap !== undefined)
    throw new AppError('USAGE', '--overlap requires --new-identity-keys', {
      hint: 'gnt-cluster renew-crypto --new-identity-keys --overlap SECONDS',
    });
  const skip = (options.skip ?? '').split(',').filter((node) => node !== '');
  const client = await context.client();
  const { nodes, skipped } = await followRenewal(context, client, skip);
  if (options.json === true) {
    context.print(JSON.stringify({ nodes, skipped }, null, 2));
    return;
  }
  context.note(`cluster key replaced on ${nodes.join(', ')}`);
  for (const node of skipped) {
    context.note(
      `${node} was left out: copy /var/lib/gnt/cluster.key there and run gnt-cluster init --store URL --cluster-key FILE`,
    );
  }
}

type Client = Awaited<ReturnType<Context['client']>>;

/** Interval of progress requests. A step of a node takes a moment, or longer on a slow disk. */
const FOLLOW_INTERVAL_MS = 1000;
const STEPS: Readonly<Record<(typeof cryptoSteps)[number], string>> = {
  learn: 'new key received:',
  seal: 'new key in use:',
  reseal: 'records encrypted again by:',
  forget: 'old key removed from:',
};

/** Starts a renewal and prints the completed steps of each node while it runs. */
async function followRenewal(
  context: Context,
  client: Client,
  skip: readonly string[],
): Promise<CryptoRenewed> {
  const { renewals } = await client.ask('GET /v1/cluster/renew-crypto');
  let told = 0;
  const tell = async (): Promise<void> => {
    const progress = await client.ask('GET /v1/cluster/renew-crypto');
    // Until this renewal begins, the progress is that of the previous one.
    if (progress.renewals === renewals) return;
    for (const step of cryptoSteps) {
      const news = progress.done.slice(told).filter((one) => one.step === step);
      if (news.length > 0) context.note(`${STEPS[step]} ${news.map((one) => one.node).join(', ')}`);
    }
    told = progress.done.length;
  };
  const over = new AbortController();
  const following = (async () => {
    while (!over.signal.aborted) {
      await pause(FOLLOW_INTERVAL_MS, over.signal);
      // The renewal's own answer reports an unreachable daemon.
      await tell().catch(() => undefined);
    }
  })();
  try {
    return await client.ask('POST /v1/cluster/renew-crypto', { body: { skip: [...skip] } });
  } finally {
    over.abort();
    await following;
  }
}

/**
 * Deletes this node's log of seen records. Its next start accepts the store's records as they are.
 * @throws AppError CONFLICT while gnt-noded runs; NOT_SUPPORTED without a common store
 */
export async function runAcceptRecords(context: Context, options: ForceOptions): Promise<void> {
  const { storeChoiceFile, seenRecordsFile } = context.paths;
  const { readStoreChoice } = await import('#shared/store/store-choice.ts');
  if ((await readStoreChoice(context.paths)) === undefined) {
    throw new AppError(
      'NOT_SUPPORTED',
      `this node has no common store: ${storeChoiceFile} does not exist`,
      {
        hint: 'Restore an embedded store by its file: systemctl stop gnt-noded, copy the file, systemctl start gnt-noded',
      },
    );
  }
  if (await isRunning(context)) {
    throw new AppError('CONFLICT', 'gnt-noded is running and has seen newer records', {
      hint: 'systemctl stop gnt-noded; instances keep running',
    });
  }
  await confirmLoss(
    context,
    'This node will accept older records, also of revoked trust and of removed nodes.',
    options,
  );
  for (const suffix of ['', '-wal', '-shm'])
    await rm(`${seenRecordsFile}${suffix}`, { force: true });
  await syncPath(dirname(seenRecordsFile));
  context.note('done; start gnt-noded to read the records: systemctl start gnt-noded');
}

async function isRunning(context: Context): Promise<boolean> {
  try {
    await (await context.client()).ask('GET /v1/node');
    return true;
  } catch (error) {
    if (isAppError(error, 'NODED_UNREACHABLE')) return false;
    throw error;
  }
}
