import { isWithin, type Submitter } from '#shared/contract/submitter.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { QuotaClaim, QuotaClaims } from '../records/quota-claims.ts';
import { type IndexedRecords, readIndexed } from '../records/read-indexed.ts';
import { claimOf, findQuotaExcess, type QuotaExcess } from './claim-quota.ts';

/** Claims resources for a job of a user. @throws AppError QUOTA_EXCEEDED */
export type RefuseOverQuota = (
  job: number,
  planned: QuotaClaim,
  submitter: Submitter,
) => Promise<void>;

export interface QuotaDependencies extends IndexedRecords {
  readonly claims: QuotaClaims;
}

export function createRefuseOverQuota({ claims, ...records }: QuotaDependencies): RefuseOverQuota {
  return async (job, planned, { user, scope }) => {
    const quota = scope?.quota;
    if (scope === null || quota === undefined) return;
    await claims.claim(job, planned, async (others) => {
      const counted = others.filter((one) => isWithin(scope, one));
      for await (const slice of readIndexed(records, (one) => isWithin(scope, one)))
        counted.push(...slice.map(claimOf));
      const excess = findQuotaExcess(quota, counted, planned);
      if (excess !== undefined) throw overQuota(user, excess);
    });
  };
}

const UNITS = {
  instances: { option: 'max-instances', format: String },
  memoryMiB: { option: 'max-memory', format: (mib: number) => `${mib} MiB` },
  vcpus: { option: 'max-vcpus', format: String },
  diskBytes: { option: 'max-disk', format: (bytes: number) => `${Math.ceil(bytes / MIB)} MiB` },
} as const;

function overQuota(user: string, { key, value, most }: QuotaExcess): AppError {
  const { option, format } = UNITS[key];
  return new AppError(
    'QUOTA_EXCEEDED',
    `the instances of user '${user}' would exceed ${option}: ${format(value)} of ${format(most)}`,
    {
      details: { user, option, value, most },
      hint: 'Remove or shrink an instance. The operator sets quotas in the RAPI users file.',
    },
  );
}
