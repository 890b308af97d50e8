import type { DoctorFinding } from '#shared/contract/api.ts';
import { localDiskBytes } from '#shared/contract/disk-template.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { poolsOf } from '../disks/volumes/thin-pools.ts';
import { examineVolumes, type KnownVolumes } from './examine-volumes.ts';
import { examineZfs, type KnownZfs } from './examine-zfs.ts';
import { describePromise, isOverpromised } from '../host/low-space.ts';

/** The others are counted. */
const MAX_NAMED = 10;

export interface DiskFacts {
  /** Instances of this node. */
  readonly instances: readonly Pick<
    InstanceRecord,
    'name' | 'diskTemplate' | 'disks' | 'snapshots'
  >[];
  /** Size of the file system of their disks. */
  readonly totalBytes: number;
  /** UUIDs that folders are named after, and volumes as GROUP/NAME, of which there is no record. */
  readonly ofNobody: readonly string[];
  /**
   * Folders of disks that were moved away, of which the other node has not said that it has them.
   */
  readonly left: readonly string[];
  /** Folders of copies and arrivals that nothing works on any more, and nobody has settled. */
  readonly abandoned: readonly string[];
  /** The cluster's folder for shared disks, and why it cannot be used; null: there is none. */
  readonly shared: { readonly folder: string; readonly problem: string | null } | null;
  /** Names of those whose guests were stopped at a write. */
  readonly halted: readonly string[];
  /** Null when there are no groups, and nobody wants one. */
  readonly volumes: KnownVolumes | null;
  /** Undefined when there are no pools of ZFS, and nobody wants one. */
  readonly zfs?: KnownZfs | undefined;
}

/** Disks are sparse: what they may grow to counts, not what they take now. */
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
    {
      check: 'disk-overcommit',
      level: isOver ? 'warning' : 'ok',
      message: isOver ? `${sizes}: a guest that finds it full stands still` : sizes,
      hint: isOver
        ? 'make the file system larger, or remove instances; guests go on by themselves when there is room again'
        : null,
    },
    {
      check: 'paused',
      level: halted.length === 0 ? 'ok' : 'warning',
      message:
        halted.length === 0
          ? 'no guest stands still'
          : `guests were stopped at a write that failed: ${halted.join(', ')}`,
      hint:
        halted.length === 0
          ? null
          : `make room ${placesOf(halted, instances)}: they go on by themselves`,
    },
    {
      check: 'disks-of-nobody',
      level: ofNobody.length === 0 ? 'ok' : 'warning',
      message:
        ofNobody.length === 0
          ? 'all disks belong to an instance'
          : `disks without a record, untouched: ${nameSome(ofNobody)}`,
      hint:
        ofNobody.length === 0
          ? null
          : 'the store has lost what it knew of them: restore it from a backup; or their instance moved away and was removed there before gnt-noded here could remove what it left (gnt-job list tells); then, or else, move away or remove their folders, or what has the name of a volume group before it by lvremove, of a ZFS dataset by zfs destroy',
    },
    ...(volumes === null ? [] : examineVolumes(volumes, instances)),
    ...(zfs === undefined ? [] : examineZfs(zfs, instances)),
    ...(left.length === 0 ? [] : [describeLeft(left)]),
    ...(abandoned.length === 0 ? [] : [describeAbandoned(abandoned)]),
  ];
}

/** Says in words where guests that were stopped at a write have their disks. */
function placesOf(halted: readonly string[], instances: DiskFacts['instances']): string {
  const all = halted.map((name) => instances.find((one) => one.name === name)?.disks ?? []);
  const pools = poolsOf(all.flat());
  return [
    ...(all.every((disks) => poolsOf(disks).length > 0) ? [] : ['on the file system of the disks']),
    ...(pools.length === 0 ? [] : [`in the ${pools.map(({ name }) => name).join(', ')}`]),
  ].join(', and ');
}

function describeLeft(left: readonly string[]): DoctorFinding {
  return {
    check: 'disks-left',
    level: 'warning',
    message: `disks that a move has left here, untouched: ${nameSome(left)}`,
    hint: 'gnt-noded removes them when the node of the instance says that it has its own: start gnt-noded there, and see this again ten minutes later. If that node is gone for good, these are the only ones: copy the folder away before gnt-node remove NODE --forget-instances, which leaves them as disks without a record',
  };
}

function describeAbandoned(abandoned: readonly string[]): DoctorFinding {
  return {
    check: 'copies-left',
    level: 'warning',
    message: `disks that a copy or a move has left here before they were an instance's: ${nameSome(abandoned)}`,
    hint: 'gnt-noded asks the store whose they are when it starts and every ten minutes, and then gives them their place or removes them: see this again twenty minutes later. If they stay, journalctl -u gnt-noded says why (copy.not-settled)',
  };
}

function nameSome(names: readonly string[]): string {
  const others = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}

function examineShared({ folder, problem }: NonNullable<DiskFacts['shared']>): DoctorFinding {
  const check = 'shared-folder';
  if (problem === null)
    return { check, level: 'ok', message: `${folder} is the cluster's shared folder`, hint: null };
  const hint = 'until then no instance with shared disks can be started here';
  return { check, level: 'error', message: problem, hint };
}
