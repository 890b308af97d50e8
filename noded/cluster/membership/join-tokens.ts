import type { JoinTokenMade } from '#shared/contract/api.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { encodeJoinToken, makeJoinToken, sealForToken } from '#shared/store/join-token.ts';
import { openJoins } from '#shared/store/redis-joins.ts';
import { readStoreChoice } from '#shared/store/store-choice.ts';
import { describeStoreUrl } from '#shared/store/store-url.ts';
import type { RootPaths } from '#shared/paths/root-paths.ts';
import type { CommonStore } from '../../records/open-store.ts';
import type { Membership } from './membership.ts';

export interface JoinTokensDependencies {
  /** Null for a node without a common store. */
  readonly common: Pick<CommonStore, 'keys'> | null;
  readonly paths: RootPaths;
  readonly membership: Pick<Membership, 'requireMember'>;
}

/**
 * Makes a token with which one node can join.
 * @throws AppError NOT_SUPPORTED without a common store; CONFLICT during a renewal of the cluster
 * key; HOST_PREREQUISITE
 */
export async function issueJoinToken(
  lifetimeS: number,
  { common, paths, membership }: JoinTokensDependencies,
): Promise<JoinTokenMade> {
  const choice = await readStoreChoice(paths);
  if (common === null || choice === undefined) {
    throw new AppError(
      'NOT_SUPPORTED',
      'this node is a cluster of its own: no other node can join',
      {
        hint: 'Move to a common store first: gnt-cluster init --store redis://HOST',
      },
    );
  }
  membership.requireMember();
  if (common.keys.next !== undefined) {
    throw new AppError('CONFLICT', 'the cluster key is being renewed', {
      hint: 'Create the token when the renewal has ended: gnt-node doctor shows it.',
    });
  }
  await using joins = await openJoins(choice.url);
  const expiresAtMs = (await joins.now()) + lifetimeS * 1000;
  const token = makeJoinToken({ expiresAtMs, cluster: choice.cluster, url: choice.url });
  await joins.put(token.id, sealForToken(token, common.keys.ring().sealing), lifetimeS * 1000);
  const store = describeStoreUrl(choice.url);
  return { token: encodeJoinToken(token), expiresAtMs, store };
}
