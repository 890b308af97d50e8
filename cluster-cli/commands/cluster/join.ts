import { AppError } from '#shared/errors/app-error.ts';
import { silentLogger } from '#shared/log/log.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import { openSealedRedis } from '#shared/cluster/cluster-store.ts';
import { type JoinToken, openWithToken, parseJoinToken } from '#shared/store/join-token.ts';
import { type Joins, openJoins } from '#shared/store/redis-joins.ts';
import { ringOf } from '#shared/store/sealed-store.ts';
import { readStoreChoice, writeStoreChoice } from '#shared/store/store-choice.ts';
import { describeStoreUrl } from '#shared/store/store-url.ts';
import { formatTime } from '../../render/format.ts';
import type { Context } from '../../terminal/context.ts';
import { promptHidden } from '../../terminal/prompt.ts';
import { keepKey } from './init-store.ts';
import { claimReplaceableStore } from './replace-embedded.ts';

export interface JoinTokenOptions {
  /** Seconds. */
  readonly lifetime?: number;
  readonly json?: boolean;
}

const DEFAULT_LIFETIME_S = 600;
/** Other nodes compare record stamps and job times from this node's clock. */
const MAX_SKEW_MS = 60_000;

/** Prints only the token on stdout, so that it can be piped. */
export async function runJoinToken(context: Context, options: JoinTokenOptions): Promise<void> {
  const client = await context.client();
  const made = await client.ask('POST /v1/cluster/join-tokens', {
    body: { lifetimeS: options.lifetime ?? DEFAULT_LIFETIME_S },
  });
  if (options.json) {
    context.print(JSON.stringify(made, null, 2));
    return;
  }
  context.print(made.token);
  context.note(
    `valid once, until ${formatTime(made.expiresAtMs)}: run gnt-cluster join on the new node while gnt-noded is stopped there. Protect the token like the cluster key`,
  );
  if (/^unix:|\/\/(localhost|127\.|\[?::1)/.test(made.store))
    context.warn(`only nodes on this host can reach the store ${made.store}`);
}

/**
 * Makes this root a node of the token's cluster.
 * @param given the token, `@FILE` or `-`; absent: from a prompt or stdin
 * @throws AppError TOKEN_INVALID, TOKEN_EXPIRED, TOKEN_USED, CLOCK_SKEW, CONFLICT, STORE_KEY,
 * HOST_PREREQUISITE, NOT_ROOT; nothing was changed then
 */
export async function runJoin(context: Context, given: string | undefined): Promise<void> {
  const { paths } = context;
  const token = parseJoinToken(await readToken(context, given));
  await refuseMember(paths, token);
  using embedded = await claimReplaceableStore(context);
  await using joins = await openJoins(token.url);
  const key = await lookUp(joins, token, context.clock.now());
  const { store, cluster } = await openSealedRedis(token.url, () => ringOf(key), silentLogger);
  await using closing = new AsyncDisposableStack();
  closing.defer(() => store.close());
  if (cluster?.uuid !== token.cluster) {
    throw new AppError(
      'CONFLICT',
      `${describeStoreUrl(token.url)} has ${cluster === undefined ? 'no cluster' : `cluster ${cluster.name}`}, and the token belongs to another cluster`,
      { hint: 'Print a token on a node of the intended cluster: gnt-cluster join-token' },
    );
  }
  // Use up the token last, after all other checks.
  await keepKey(paths, key, cluster.uuid, {
    before: async () => {
      if (!(await joins.take(token.id))) throw used(token);
    },
  });
  const { replaces } = embedded;
  await writeStoreChoice(paths, { url: token.url, cluster: cluster.uuid, replaces });
  await embedded.finish();
  context.note(
    `this node joined cluster ${cluster.name} in ${describeStoreUrl(token.url)}; next step: systemctl start gnt-noded`,
  );
}

async function readToken(context: Context, given: string | undefined): Promise<string> {
  const { values, terminal } = context;
  if (given === undefined && terminal.stdin.isTTY) return promptHidden(context, 'token: ');
  if (given === undefined || given === '-') return values.readText('TOKEN', '-');
  if (!given.startsWith('@')) {
    context.warn(
      'other users can see a token on the command line, and the shell keeps it in its history. It contains the password of the store, which stays valid. Use @FILE or -',
    );
  }
  return values.resolve('TOKEN', given);
}

/** Refuses a node that is already in a cluster. */
async function refuseMember(paths: RootPaths, { cluster }: JoinToken): Promise<void> {
  const choice = await readStoreChoice(paths);
  if (choice === undefined) return;
  const which = choice.cluster === cluster ? 'this cluster already' : 'another cluster';
  throw new AppError('CONFLICT', `this node is in ${which}: ${describeStoreUrl(choice.url)}`, {
    hint:
      choice.cluster === cluster
        ? 'Start gnt-noded; the token was not used'
        : 'Use another GNT_ROOT; the token was not used',
  });
}

/** @throws AppError CLOCK_SKEW, TOKEN_EXPIRED, TOKEN_USED, TOKEN_INVALID */
export async function lookUp(joins: Joins, token: JoinToken, hereMs: number): Promise<Uint8Array> {
  const thereMs = await joins.now();
  if (Math.abs(hereMs - thereMs) > MAX_SKEW_MS) {
    const seconds = Math.round(Math.abs(hereMs - thereMs) / 1000);
    const way = hereMs > thereMs ? 'ahead of' : 'behind';
    throw new AppError(
      'CLOCK_SKEW',
      `the clock of this host is ${seconds} s ${way} the clock of the store ${describeStoreUrl(token.url)}`,
      { hint: 'timedatectl set-ntp true; the token was not used' },
    );
  }
  if (thereMs >= token.expiresAtMs) {
    throw new AppError('TOKEN_EXPIRED', `the token expired at ${formatTime(token.expiresAtMs)}`, {
      hint: 'Print a new token on a node of the cluster: gnt-cluster join-token',
    });
  }
  const sealed = await joins.look(token.id);
  if (sealed === undefined) throw used(token);
  return openWithToken(token, sealed);
}

function used({ url }: JoinToken): AppError {
  return new AppError(
    'TOKEN_USED',
    `the token was already used with the store ${describeStoreUrl(url)}`,
    {
      hint: 'Print a new token: gnt-cluster join-token. If the use was not yours, run gnt-cluster renew-crypto',
    },
  );
}
