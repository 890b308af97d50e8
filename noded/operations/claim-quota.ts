import type { InstanceRecord } from '#shared/contract/instance.ts';
import { mergeSettings } from '../instances/record/merge-changes.ts';
import { DEFAULT_BACKEND_PARAMETERS, DEFAULT_DISK_BYTES } from '../instances/record/plan-record.ts';
import type { Opcode, OpcodeOf } from '#shared/contract/opcode.ts';
import type { Quota } from '#shared/contract/submitter.ts';
import type { QuotaClaim } from '../records/quota-claims.ts';

type Amounts = Readonly<Record<keyof Quota, number>>;
export type Counted = Pick<
  InstanceRecord,
  'name' | 'tags' | 'beparams' | 'disks' | 'snapshots' | 'partsOfRun'
>;

export interface QuotaExcess {
  readonly key: keyof Amounts;
  readonly value: number;
  readonly most: number;
}

const NONE: Amounts = { instances: 0, memoryMiB: 0, vcpus: 0, diskBytes: 0 };
const KEYS = ['instances', 'memoryMiB', 'vcpus', 'diskBytes'] as const;

/**
 * Returns the claim of an instance. A QEMU process keeps its memory and vcpus until its next start,
 * and each snapshot may come to need as many bytes as its disks.
 */
export function claimOf({ name, tags, ...instance }: Counted): QuotaClaim {
  const { memoryMiB, vcpus } = instance.beparams;
  const { memoryMiB: memoryOfRun = 0, vcpus: vcpusOfRun = 0 } = instance.partsOfRun?.beparams ?? {};
  return {
    name,
    tags,
    memoryMiB: Math.max(memoryMiB, memoryOfRun),
    vcpus: Math.max(vcpus, vcpusOfRun),
    diskBytes: [instance, ...instance.snapshots].reduce((sum, one) => sum + sumOf(one.disks), 0),
  };
}

export function claimOfNew(opcode: OpcodeOf<'INSTANCE_CREATE'>): QuotaClaim {
  const isDiskless = opcode.diskTemplate === 'diskless';
  const disks = opcode.disks.length > 0 ? opcode.disks : [{ sizeBytes: DEFAULT_DISK_BYTES }];
  return {
    name: opcode.name,
    tags: opcode.tags,
    ...mergeSettings(DEFAULT_BACKEND_PARAMETERS, opcode.beparams),
    diskBytes: isDiskless ? 0 : sumOf(disks),
  };
}

/** Returns the claim after an operation on an instance; null if the operation claims nothing. */
export function claimAfter(opcode: Opcode, instance: Counted): QuotaClaim | null {
  const former = claimOf(instance);
  const more = (diskBytes: number, changes: Partial<QuotaClaim> = {}): QuotaClaim => ({
    ...former,
    ...changes,
    diskBytes: former.diskBytes + diskBytes,
  });
  if (opcode.opcode === 'INSTANCE_COPY')
    return { ...claimOf({ ...instance, snapshots: [], partsOfRun: null }), name: opcode.newName };
  if (opcode.opcode === 'INSTANCE_SNAPSHOT') return more(sumOf(instance.disks));
  if (opcode.opcode === 'INSTANCE_GROW_DISK') {
    const { sizeBytes = 0 } = instance.disks[opcode.disk] ?? {};
    return more(opcode.absolute ? opcode.amountBytes - sizeBytes : opcode.amountBytes);
  }
  if (opcode.opcode !== 'INSTANCE_SET_PARAMS') return null;
  const { beparams, disks } = opcode;
  const added = disks.flatMap((change) => (change.action === 'add' ? [change.disk] : []));
  return more(sumOf(added), {
    ...DEFAULT_BACKEND_PARAMETERS,
    ...mergeSettings(instance.beparams, beparams),
  });
}

/**
 * Finds a quota that an operation would exceed. An operation that takes no more of a resource than
 * before is never refused for it: the operator may have lowered the quota.
 * @param claims of the user's instances and unfinished jobs; of one instance the largest counts
 */
export function findQuotaExcess(
  quota: Quota,
  claims: readonly QuotaClaim[],
  planned: QuotaClaim,
): QuotaExcess | undefined {
  const before = totalOf(claims);
  const after = totalOf([...claims, planned]);
  return KEYS.map((key) => ({ key, value: after[key], most: quota[key] ?? Infinity })).find(
    ({ key, value, most }) => value > most && value > before[key],
  );
}

function totalOf(claims: readonly QuotaClaim[]): Amounts {
  const largest = new Map<string, Amounts>();
  for (const { name, memoryMiB, vcpus, diskBytes } of claims) {
    const one = largest.get(name) ?? NONE;
    largest.set(name, {
      instances: 1,
      memoryMiB: Math.max(one.memoryMiB, memoryMiB),
      vcpus: Math.max(one.vcpus, vcpus),
      diskBytes: Math.max(one.diskBytes, diskBytes),
    });
  }
  return [...largest.values()].reduce(
    (sum, one) => ({
      instances: sum.instances + one.instances,
      memoryMiB: sum.memoryMiB + one.memoryMiB,
      vcpus: sum.vcpus + one.vcpus,
      diskBytes: sum.diskBytes + one.diskBytes,
    }),
    NONE,
  );
}

function sumOf(disks: readonly { readonly sizeBytes: number }[]): number {
  return disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
