import { isWithin, type Submitter } from '#shared/contract/submitter.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { MIB } from '#shared/units/bytes.ts';
import type { InstanceIndex } from '../records/instance-index.ts';
import type { InstanceRepository } from '../records/instance-repository.ts';
import type { QuotaClaim, QuotaClaims } from '../records/quota-claims.ts';
import { claimOf, findQuotaExcess, type QuotaExcess } from './quota-claims.ts';

/** Claims resources for a job of a user. @throws AppError QUOTA_EXCEEDED */
export type RefuseOverQuota = (
  job: number,
  planned: QuotaClaim,
  submitter: Submitter,
) => Promise<void>;

export interface QuotaDependencies {
  readonly index: Pick<InstanceIndex, 'list'>;
  readonly instances: Pick<InstanceRepository, 'readSome'>;
  readonly claims: QuotaClaims;
}

export function createRefuseOverQuota({
  index,
  instances,
  claims,
}: QuotaDependencies): RefuseOverQuota {
  return async (job, planned, { user, scope }) => {
    const quota = scope?.quota;
    if (scope === null || quota === undefined) return;
    await claims.claim(job, planned, async (others) => {
      const own = (await index.list()).filter((one) => isWithin(scope, one));
      const { readable } = await instances.readSome(own.map(({ uuid }) => uuid));
      const counted = [
        ...readable.map(({ value }) => claimOf(value)),
        ...others.filter((one) => isWithin(scope, one)),
      ];
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
