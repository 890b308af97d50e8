import type { DoctorFinding } from '#shared/contract/api.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import type { Volume } from '../../storage/drivers/volumes/volume-system.ts';
import { FULL_SHARE, roomHint, type ThinPool } from '../../storage/drivers/volumes/thin-pools.ts';
import { failure, ok, warning } from './check.ts';
import { toGib } from './in-gib.ts';
import type { VolumeFacts } from './volume-facts.ts';

/** Used share of a thin pool or a ZFS dataset that causes a warning. */
export const NEARLY_FULL = 0.8;

export interface KnownVolumes extends VolumeFacts {
  /** The cluster's place for new disks, as GROUP or GROUP/POOL; undefined: there is none. */
  readonly vgName: string | undefined;
}

type WithDisks = Pick<InstanceRecord, 'name' | 'diskTemplate' | 'disks'>;

/** @param instances of this node */
export function examineVolumes(
  volumes: KnownVolumes,
  instances: readonly WithDisks[],
): readonly DoctorFinding[] {
  return [examineGroups(volumes), ...examineAbsent(volumes, instances), ...examinePools(volumes)];
}

/** Finds groups that hold disks but are missing on this node at the moment. */
function examineAbsent(
  { groups }: KnownVolumes,
  instances: readonly WithDisks[],
): readonly DoctorFinding[] {
  if (groups === null) return [];
  const there = new Set(groups.map(({ name }) => name));
  const plain = instances.filter(({ diskTemplate }) => diskTemplate === 'plain');
  const missing = plain.flatMap(({ name, disks }) =>
    disks.flatMap(({ vg }) => (vg === undefined || there.has(vg) ? [] : [{ name, vg }])),
  );
  return [...Map.groupBy(missing, ({ vg }) => vg)].map(([vg, all]) =>
    failure(
      'volume-group',
      `volume group ${vg} is missing on this node but holds disks of ${[...new Set(all.map(({ name }) => name))].join(', ')}`,
      `Bring its devices back (pvs, vgs; vgchange --activate y ${vg}). If the group is gone for good: gnt-instance remove NAME`,
    ),
  );
}

/** Examines the volume groups: only disks of the template `plain` need one. */
function examineGroups({ groups, pools, vgName, problem }: KnownVolumes): DoctorFinding {
  const check = 'volume-group';
  if (problem !== null) return failure(check, problem.message, problem.hint ?? null);
  const told = (groups ?? []).map(
    ({ name, sizeBytes, freeBytes }) =>
      `${name} (${toGib(freeBytes)} of ${toGib(sizeBytes)} free${describePools(name, pools)})`,
  );
  const there =
    groups === null ? 'LVM does not answer' : `this node has: ${told.join(', ') || 'none'}`;
  if (vgName === undefined) {
    const message = `the cluster has no volume group for disks with the template plain; ${there}`;
    return ok(check, message);
  }
  return examinePlace({ groups, pools }, vgName, told, there);
}

function examinePlace(
  { groups, pools }: Pick<VolumeFacts, 'groups' | 'pools'>,
  vgName: string,
  told: readonly string[],
  there: string,
): DoctorFinding {
  const check = 'volume-group';
  const [group = '', pool] = vgName.split('/');
  const found = groups?.findIndex(({ name }) => name === group) ?? -1;
  const isPoolThere =
    pool === undefined || pools.some((one) => one.group === group && one.name === pool);
  if (found >= 0 && isPoolThere) return ok(check, `volume group ${told[found] ?? group}`);
  const message =
    found < 0
      ? `the cluster's volume group ${group} is missing on this node; ${there}`
      : `the cluster's thin pool ${vgName} is missing on this node; ${there}`;
  const make =
    found < 0
      ? `vgcreate ${group} DEVICE`
      : `lvcreate --type thin-pool --size SIZE --name ${pool ?? ''} ${group} (package thin-provisioning-tools)`;
  const others = 'or place instances with the disk template plain on other nodes';
  const hint =
    groups === null
      ? `Install LVM (apt-get install lvm2) or run vgs to see the error; ${others}`
      : `${make}, ${others}`;
  return warning(check, message, hint);
}

function describePools(group: string, pools: readonly ThinPool[]): string {
  const names = pools.flatMap((pool) => (pool.group === group ? [pool.name] : []));
  return names.length === 0 ? '' : `, thin pools ${names.join(', ')}`;
}

/**
 * Examines the pools that hold disks or get new ones. Volumes are thin, so a pool may become full.
 */
function examinePools({ pools, own, vgName }: KnownVolumes): readonly DoctorFinding[] {
  return pools.flatMap((pool) => {
    const path = `${pool.group}/${pool.name}`;
    const inIt = own.filter((one) => one.group === pool.group && one.pool === pool.name);
    return inIt.length === 0 && vgName !== path ? [] : [examinePool(path, pool, inIt)];
  });
}

function examinePool(path: string, pool: ThinPool, inIt: readonly Volume[]): DoctorFinding {
  const check = 'thin-pool';
  const promised = inIt.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const used = `thin pool ${path} is ${Math.floor(pool.usedShare * 100)} % full`;
  const sizes = `its ${inIt.length} volume(s) can grow to ${toGib(promised)}, the pool has ${toGib(pool.sizeBytes)}`;
  const message = `${used}, ${sizes}`;
  if (!pool.isZeroing) {
    const leaks = `thin pool ${path} does not zero its blocks: a new disk would show data of earlier disks`;
    return failure(check, leaks, `lvchange --zero y ${path}`);
  }
  if (pool.usedShare >= FULL_SHARE) {
    const stopped = `${message}: it accepts no new disks, and guests that write may pause`;
    return failure(check, stopped, roomHint(path));
  }
  if (pool.usedShare >= NEARLY_FULL) return warning(check, message, roomHint(path));
  if (promised <= pool.sizeBytes) return ok(check, message);
  const hint = `Guests pause when it is full. Enlarge it (lvextend --size SIZE ${path}), or set activation/thin_pool_autoextend_threshold in /etc/lvm/lvm.conf.`;
  return warning(check, message, hint);
}
