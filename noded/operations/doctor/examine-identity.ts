import { isAppError } from '#shared/errors/app-error.ts';
import { chooseKeys } from '../../records/identity-keys.ts';
import { type Check, failure, loadCluster, ok } from './check.ts';

const CHECK = 'identity';
const HINT =
  'Restore the store from a backup, or replace the keys and publish them: gnt-cluster renew-crypto --new-identity-keys --overlap 0';

/** Finds lost keys, without which instances get no tokens. */
export const checkIdentity: Check = async (parts) => {
  const cluster = await loadCluster(parts);
  if (cluster?.identity === undefined || cluster.identity.policy === 'no') return [];
  try {
    const { signing, published } = chooseKeys(
      await parts.records.clusters.loadIdentityKeys(),
      Date.now(),
    );
    if (signing === undefined) return failure(CHECK, 'the identity keys are missing', HINT);
    const since = new Date(signing.createdAtMs).toISOString().slice(0, 10);
    return ok(
      CHECK,
      `the identity keys in use are from ${since}; ${published.length} are published`,
    );
  } catch (error) {
    if (!isAppError(error)) throw error;
    return failure(
      CHECK,
      `the identity keys cannot be read: ${error.message}`,
      error.code === 'RECORD_UNREADABLE' ? HINT : (error.hint ?? null),
    );
  }
};
