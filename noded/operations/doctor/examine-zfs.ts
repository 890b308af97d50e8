import type { DoctorFinding } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { FULL_SHARE } from '../../storage/drivers/volumes/thin-pools.ts';
import type { Volume, VolumeGroup } from '../../storage/drivers/volumes/volume-system.ts';
import { datasetRoomHint, makeHint } from '../../storage/drivers/zfs/zfs-errors.ts';
import { NEARLY_FULL } from './examine-volumes.ts';
import { failure, ok, warning } from './check.ts';
import { toGib } from './in-gib.ts';
import type { VolumeFacts } from './volume-facts.ts';

export interface KnownZfs extends VolumeFacts {
  /** The cluster's dataset for new disks; undefined: there is none. */
  readonly zfsPool: string | undefined;
}

type WithDisks = Pick<InstanceRecord, 'name' | 'disks'>;

/** @param instances of this node */
export function examineZfs(
  zfs: KnownZfs,
  instances: readonly WithDisks[],
): readonly DoctorFinding[] {
  return [examinePlace(zfs), ...examineAbsent(zfs, instances), ...examineRoom(zfs)];
}

function examinePlace({ groups, zfsPool, problem }: KnownZfs): DoctorFinding {
  const check = 'zfs-pool';
  if (problem !== null) return failure(check, problem.message, problem.hint ?? null);
  const pools = (groups ?? []).filter(({ name }) => !name.includes('/')).map(describe);
  const there = groups === null ? 'ZFS does not answer' : `this node has: ${pools.join(', ') || 'none'}`; // prettier-ignore
  if (zfsPool === undefined) {
    const message = `the cluster has no ZFS pool for disks with the template zfs; ${there}`;
    return ok(check, message);
  }
  const found = groups?.find(({ name }) => name === zfsPool);
  if (found !== undefined) return ok(check, `ZFS dataset ${describe(found)}`);
  const others = 'or place instances with the disk template zfs on other nodes';
  const make =
    groups === null
      ? `Install ZFS (apt-get install zfsutils-linux zfs-dkms; modprobe zfs), or run zpool status to see the error`
      : makeHint(zfsPool);
  const message = `the cluster's ZFS dataset ${zfsPool} is missing on this node; ${there}`;
  return warning(check, message, `${make}; ${others}`);
}

/** Finds datasets that hold disks but are missing on this node at the moment. */
function examineAbsent(
  { groups }: KnownZfs,
  instances: readonly WithDisks[],
): readonly DoctorFinding[] {
  if (groups === null) return [];
  const there = new Set(groups.map(({ name }) => name));
  const missing = instances.flatMap(({ name, disks }) =>
    disks.flatMap(({ dataset }) =>
      dataset === undefined || there.has(dataset) ? [] : [{ name, dataset }],
    ),
  );
  return [...Map.groupBy(missing, ({ dataset }) => dataset)].map(([dataset, all]) =>
    failure(
      'zfs-pool',
      `ZFS dataset ${dataset} is missing on this node but holds disks of ${[...new Set(all.map(({ name }) => name))].join(', ')}`,
      'Import its pool (zpool import). If the pool is gone for good: gnt-instance remove NAME',
    ),
  );
}

/** Examines the groups that hold disks or get new ones. Volumes take no space beforehand. */
function examineRoom({ groups, own, zfsPool }: KnownZfs): readonly DoctorFinding[] {
  return (groups ?? []).flatMap((group) => {
    const inIt = own.filter((one) => one.group === group.name);
    return inIt.length === 0 && zfsPool !== group.name ? [] : [judgeRoom(group, inIt)];
  });
}

function judgeRoom(
  { name, sizeBytes, freeBytes }: VolumeGroup,
  inIt: readonly Volume[],
): DoctorFinding {
  const check = 'zfs-room';
  const usedShare = sizeBytes === 0 ? 1 : 1 - freeBytes / sizeBytes;
  const promised = inIt.reduce((sum, volume) => sum + volume.sizeBytes, 0);
  const message = `ZFS dataset ${name} is ${Math.floor(usedShare * 100)} % full, its ${inIt.length} volume(s) can grow to ${toGib(promised)} of ${toGib(sizeBytes)}`;
  const hint = datasetRoomHint(name);
  if (usedShare >= FULL_SHARE) {
    const stopped = `${message}: it accepts no new disks, and guests that write may pause`;
    return failure(check, stopped, hint);
  }
  if (usedShare >= NEARLY_FULL || promised > sizeBytes) return warning(check, message, hint);
  return ok(check, message);
}

function describe({ name, sizeBytes, freeBytes }: VolumeGroup): string {
  return `${name} (${toGib(freeBytes)} of ${toGib(sizeBytes)} free)`;
}
