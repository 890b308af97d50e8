import type { DoctorFinding } from '#shared/contract/api.ts';
import { localDiskBytes } from '#shared/contract/disk-template.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { isAppError, messageOf } from '#shared/errors/app-error.ts';
import { type Check, failure, listOwn, loadCluster, type NodeParts, ok, warning } from './check.ts';
import { listAbandoned, listForgotten, listLeft, listNobodys } from './list-leftovers.ts';
import { lookAtVolumes, type VolumeFacts } from './volume-facts.ts';
import { poolsOf } from '../../storage/drivers/volumes/thin-pools.ts';
import { examineVolumes, type KnownVolumes } from './examine-volumes.ts';
import { examineZfs, type KnownZfs } from './examine-zfs.ts';
import { describePromise, isOverpromised } from '../../host/low-space.ts';

/** Names in a finding; further ones are only counted. */
const MAX_NAMED = 10;

interface DiskFacts {
  /** Instances of this node. */
  readonly instances: readonly Pick<
    InstanceRecord,
    'name' | 'diskTemplate' | 'disks' | 'snapshots'
  >[];
  /** Size of the file system that holds the disks. */
  readonly totalBytes: number;
  /** UUIDs of folders, and volumes as GROUP/NAME, without a record. */
  readonly ofNobody: readonly string[];
  /** Folders of disks that were moved away, not yet confirmed by the other node. */
  readonly left: readonly string[];
  /** Folders of unfinished copies and arrivals without a job. */
  readonly abandoned: readonly string[];
  /** The cluster's folder for shared disks, and why it cannot be used; null: there is none. */
  readonly shared: { readonly folder: string; readonly problem: string | null } | null;
  /** Names of instances whose guests were paused at a write. */
  readonly halted: readonly string[];
  /** Null without volume groups, if no setting names one. */
  readonly volumes: KnownVolumes | null;
  /** Undefined without ZFS pools, if no setting names one. */
  readonly zfs?: KnownZfs | undefined;
}

/** Finds nothing while the store, which knows the instances, is unavailable. */
export const checkDisks: Check = async (parts) => {
  try {
    return examineDisks(await collectDiskFacts(parts));
  } catch (error) {
    if (isAppError(error)) return [];
    throw error;
  }
};

async function collectDiskFacts(parts: NodeParts): Promise<DiskFacts> {
  const { config, records, host, guests } = parts;
  const instances = await listOwn(parts);
  const { sharedFileStorageDir, vgName, zfsPool } = (await loadCluster(parts)) ?? {};
  const shared = await examineSharedFolder(host, sharedFileStorageDir);
  const here = { nodeName: config.nodeName, owns: records.owns };
  const [volumes, zfs] = await Promise.all([
    lookAtVolumes(host.lvm, vgName, here),
    lookAtVolumes(host.zfs, zfsPool, here),
  ]);
  const reached = instances.filter(
    ({ diskTemplate }) => diskTemplate !== 'sharedfile' || shared?.problem === null,
  );
  return {
    instances,
    totalBytes: await host.disks.totalBytes(),
    ofNobody: [
      ...(await listNobodys(parts, [...volumes.own, ...zfs.own])),
      ...(await listForgotten(reached, parts)),
    ],
    left: await listLeft(parts),
    abandoned: await listAbandoned(parts),
    shared,
    volumes: isOfConcern(volumes, vgName) ? { ...volumes, vgName } : null,
    zfs: isOfConcern(zfs, zfsPool) ? { ...zfs, zfsPool } : undefined,
    halted: guests.keeper.list().flatMap((kept) => (kept.machine.halt ? [kept.instanceName] : [])),
  };
}

async function examineSharedFolder(
  { shared }: NodeParts['host'],
  folder: string | undefined,
): Promise<DiskFacts['shared']> {
  if (folder === undefined) return null;
  return { folder, problem: await shared.require().then(() => null, messageOf) };
}

/** Returns whether there are volumes, or a setting names a place for them. */
function isOfConcern({ groups, problem }: VolumeFacts, place: string | undefined): boolean {
  return place !== undefined || problem !== null || (groups ?? []).length > 0;
}

/** Examines disks. They are sparse: their full sizes count, not the space that they take now. */
export function examineDisks({
  instances,
  totalBytes,
  ofNobody,
  left,
  abandoned,
  shared,
  halted,
  volumes,
  zfs,
}: DiskFacts): readonly DoctorFinding[] {
  const promise = {
    instances: instances.length,
    promisedBytes: instances.reduce((sum, instance) => sum + localDiskBytes(instance), 0),
    totalBytes,
  };
  const sizes = describePromise(promise);
  const isOver = isOverpromised(promise);
  return [
    ...(shared === null ? [] : [examineShared(shared)]),
    isOver
      ? warning(
          'disk-overcommit',
          `${sizes}: a guest pauses when it finds the file system full`,
          'Enlarge the file system or remove instances. Paused guests resume by themselves when there is room.',
        )
      : ok('disk-overcommit', sizes),
    halted.length === 0
      ? ok('paused', 'no guest is paused')
      : warning(
          'paused',
          `guests paused at a failed write: ${halted.join(', ')}`,
          `Free space ${placesOf(halted, instances)}. The guests then resume by themselves.`,
        ),
    ofNobody.length === 0
      ? ok('orphaned-disks', 'all disks belong to an instance')
      : warning(
          'orphaned-disks',
          `orphaned disks, left untouched: ${nameSome(ofNobody)}`,
          'Restore the store from a backup if it lost their records. If their instance moved away and was removed there, or they are not needed: move the folders away, or remove the named volumes with lvremove or zfs destroy.',
        ),
    ...(volumes === null ? [] : examineVolumes(volumes, instances)),
    ...(zfs === undefined ? [] : examineZfs(zfs, instances)),
    ...(left.length === 0 ? [] : [describeLeft(left)]),
    ...(abandoned.length === 0 ? [] : [describeAbandoned(abandoned)]),
  ];
}

/** Describes where the paused guests have their disks. */
function placesOf(halted: readonly string[], instances: DiskFacts['instances']): string {
  const all = halted.map((name) => instances.find((one) => one.name === name)?.disks ?? []);
  const pools = poolsOf(all.flat());
  return [
    ...(all.every((disks) => poolsOf(disks).length > 0) ? [] : ['on the file system of the disks']),
    ...(pools.length === 0 ? [] : [`in ${pools.map(({ name }) => name).join(', ')}`]),
  ].join(', and ');
}

function describeLeft(left: readonly string[]): DoctorFinding {
  return warning(
    'disks-left',
    `disks left by a move, untouched: ${nameSome(left)}`,
    "gnt-noded removes them once the instance's node confirms its own copy: start gnt-noded there and wait ten minutes. If that node is lost for good, copy the folder away before gnt-node remove NODE --forget-instances",
  );
}

function describeAbandoned(abandoned: readonly string[]): DoctorFinding {
  return warning(
    'copies-left',
    `disks left by an unfinished copy or move: ${nameSome(abandoned)}`,
    'gnt-noded settles them at its start and every ten minutes: check again in twenty minutes. If they stay, search for copy.not-settled: journalctl -u gnt-noded',
  );
}

function nameSome(names: readonly string[]): string {
  const others = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}

function examineShared({ folder, problem }: NonNullable<DiskFacts['shared']>): DoctorFinding {
  const check = 'shared-folder';
  if (problem === null) return ok(check, `${folder} is the cluster's shared folder`);
  const hint = 'Until then instances with shared disks cannot start here.';
  return failure(check, problem, hint);
}
