import type { HostRoom } from '#shared/contract/host-room.ts';
import type { DiskTemplate } from '#shared/contract/disk-template.ts';
import type { InstanceDisk, InstanceRecord } from '#shared/contract/instance.ts';
import type { CopyWatch } from './copy-disks.ts';
import type { InstallDisks } from './install-disks.ts';
import type { SnapshotVerbs } from './snapshot-disks.ts';

/** Whether new disks fit beside the old ones. */
export interface RoomBeside {
  readonly isEnough: boolean;
  readonly neededBytes: number;
  readonly freeBytes: number;
}

/** An instance; without a template it has no record. */
export type Known = Pick<InstanceRecord, 'uuid'> & Partial<Pick<InstanceRecord, 'diskTemplate'>>;

/** The facts of a record that decide over interrupted changes of its disks. */
export type SettledRecord = Pick<
  InstanceRecord,
  'uuid' | 'instanceId' | 'restoreId' | 'installState' | 'diskTemplate' | 'disks' | 'snapshots'
>;

export type InstallPlace =
  { readonly kind: 'in-place' } | { readonly kind: 'beside'; readonly neededBytes: number };

export type DiskDrivers = Readonly<Record<DiskTemplate, DiskDriver>>;

/**
 * Keeps the disks of one disk template. Everything else of an instance is in its folder, which
 * `InstanceFolders` keeps for all templates. `InstanceDisks` settles an instance before it calls
 * `hold`, `grow`, `change` and `copy`.
 */
export interface DiskDriver {
  pathOf(instance: InstanceRecord, index: number): string;
  /**
   * Ends interrupted changes as the record says. Idempotent.
   * @param onZeroing receives work that continues after this resolves, so that a start does not
   * wait for it. Later calls for the same instance wait for that work.
   * @returns names of the files and volumes that it changed
   * @throws AppError DISK_IN_USE; CONFLICT: another node changes the volume group
   */
  settle(
    instance: SettledRecord,
    onZeroing?: (zeroing: Promise<void>) => void,
  ): Promise<readonly string[]>;
  /** @throws AppError DISK_MISSING naming the first missing disk, HOST_PREREQUISITE */
  requireDisks(instance: InstanceRecord): Promise<void>;
  /**
   * Locks the disks of a stopped instance until the answer is disposed of.
   * @throws AppError DISK_IN_USE, DISK_MISSING; NOT_SUPPORTED: a disk is a symbolic link;
   * INSTANCE_STATE: an interrupted grow left a volume larger than its record says
   */
  hold(instance: InstanceRecord): Promise<AsyncDisposable>;
  /**
   * Refuses disks that any process has open, including an unknown QEMU process.
   * @throws AppError DISK_IN_USE, HOST_PREREQUISITE
   */
  checkUnused(instance: Known): Promise<void>;
  /**
   * Refuses an installation that would empty the disks in place.
   * @throws AppError DISK_IN_USE; CONFLICT: an administrator's snapshots would be lost
   */
  checkOverwrite(instance: InstanceRecord): Promise<void>;
  /**
   * Refuses sizes that the storage cannot hold.
   * @throws AppError VALIDATION; DISK_SPACE, HOST_PREREQUISITE (volumes)
   */
  checkSizes(
    disks: readonly (Pick<InstanceDisk, 'sizeBytes'> & Partial<InstanceDisk>)[],
    instance: Pick<InstanceRecord, 'diskTemplate'>,
  ): Promise<void>;
  /**
   * Estimates the room for new disks: the larger of the used size of the old disks and the size of
   * the image, and at most the size on record.
   */
  roomBeside(instance: InstanceRecord, imageBytes: number): Promise<RoomBeside>;
  /**
   * Returns the disks that an installation writes to. Their room is reserved until the answer is
   * disposed of.
   * @param instance with the id of this installation
   */
  openForInstall(instance: InstanceRecord, where: InstallPlace): InstallDisks & Disposable;
  /**
   * Enlarges a disk that no QEMU process has open, and syncs it.
   * @throws AppError DISK_IN_USE, DISK_MISSING, DISK_FULL; NOT_SUPPORTED: it is a symbolic link
   */
  grow(instance: InstanceRecord, index: number, sizeBytes: number): Promise<void>;
  /**
   * Makes the disks match the record that `commit` writes. All disks of the record are there.
   * @param after the disks of the record with more at the end, or without one
   * @throws AppError DISK_IN_USE, DISK_FULL; CONFLICT: a new file name already holds data
   */
  change<Result>(
    instance: InstanceRecord,
    after: InstanceRecord['disks'],
    commit: () => Promise<Result>,
  ): Promise<Result>;
  readonly snapshots: SnapshotVerbs;
  /** Absent if disks cannot be copied or moved as files. */
  readonly copy?: CopyVerbs;
  /** Absent if all disks are files below the instance's folder. */
  readonly volumes?: VolumeVerbs;
  /** Describes the disks in refusals. */
  readonly label: string;
}

/** Copies the files of one instance into the folder of another one. */
export interface CopyVerbs {
  /** @throws AppError DISK_MISSING, DISK_SPACE; NOT_SUPPORTED: a disk is a symbolic link */
  check(from: InstanceRecord): Promise<void>;
  /**
   * Fills the folder of a copy. The caller holds the disks of `from`. @throws AppError DISK_SPACE
   */
  fill(
    dir: string,
    from: InstanceRecord,
    to: Pick<InstanceRecord, 'uuid' | 'instanceId'>,
    watch: CopyWatch,
  ): Promise<void>;
}

/** Verbs of disks outside the instance's folder. */
export interface VolumeVerbs {
  /** Returns the room for new volumes, some seconds old; empty if the cluster names no place. */
  room(): Promise<Pick<HostRoom, 'volumes' | 'zvols'>>;
  /**
   * Returns true if a pool with volumes of the instance is too full for further writes; null if the
   * instance has no volumes here.
   */
  isPoolFull(instance: Known): Promise<boolean | null>;
  /** Returns volumes on record, as GROUP/VOLUME, whose group the node does not have now. */
  listAbsent(
    instance: Pick<InstanceRecord, 'disks'> & Partial<Pick<InstanceRecord, 'snapshots'>>,
  ): Promise<readonly string[]>;
  /** Makes room for a disk that a QEMU process has open and then enlarges itself. */
  growBelow(instance: InstanceRecord, index: number, sizeBytes: number): Promise<void>;
  /**
   * Locks all volumes of the instance for their removal.
   * @throws AppError DISK_IN_USE; CONFLICT: an administrator's snapshots would be lost
   */
  holdForRemoval(instance: Known): Promise<HeldForRemoval>;
}

export interface HeldForRemoval extends AsyncDisposable {
  remove(): Promise<void>;
}
