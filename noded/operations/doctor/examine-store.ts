import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { type Check, failure, ok, warning } from './check.ts';

/** Records in a finding; the log names all of them. */
const MAX_NAMED_RECORDS = 5;

export const checkStore: Check = async ({ records }) => {
  try {
    await records.clusters.load();
    return ok('store', `${records.storeDescription} answers`);
  } catch (error) {
    return failure('store', messageOf(error), isAppError(error) ? (error.hint ?? null) : null);
  }
};

export const checkRisks: Check = async ({ records: { store } }) => {
  const check = 'store-risks';
  const asked = store.risks?.() ?? Promise.resolve([]);
  const found = await asked.catch((error: unknown) => messageOf(error));
  if (typeof found === 'string')
    return warning(
      check,
      `it is unknown whether the store keeps acknowledged writes: ${found}`,
      'If Redis runs, allow its user the command INFO: ACL SETUSER USER +info',
    );
  const [worst, ...others] = found.toSorted((a, b) => a.level.localeCompare(b.level));
  if (worst === undefined) return ok(check, 'the store keeps acknowledged writes');
  const message = [worst, ...others].map((risk) => risk.message).join('; ');
  return { check, level: worst.level, message: `the store: ${message}`, hint: worst.hint };
};

export const checkRecords: Check = ({ records }) => {
  const problems = records.problems.list();
  if (problems.length === 0) return ok('records', 'every record of the store is readable');
  const named = problems.map(({ collection, id, reason }) => `${collection}/${id} (${reason})`);
  return warning(
    'records',
    `${problems.length} record(s) set aside: ${named.slice(0, MAX_NAMED_RECORDS).join(', ')}`,
    'Restore the store from a backup, or start the release that wrote these records. Their objects stay untouched. After a deliberate restore, run on each node: gnt-cluster accept-records',
  );
};

export const checkRenewal: Check = async ({ clusterKey }) => {
  const check = 'cluster-key';
  try {
    const underWay = await clusterKey.describe();
    if (underWay === null) return ok(check, 'no renewal of the cluster key is pending');
    return warning(
      check,
      underWay,
      'It continues when all nodes answer. Leave a lost node out: gnt-cluster renew-crypto --skip NODE',
    );
  } catch (error) {
    return warning(check, messageOf(error), null);
  }
};
