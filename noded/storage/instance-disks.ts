import type { ActiveDisk } from '#shared/contract/api.ts';
import type { HostRoom } from '#shared/contract/host-room.ts';
import type { InstanceDisk, InstanceRecord } from '#shared/contract/instance.ts';
import type { CopyRequest } from './copy-disks.ts';
import type { InstallDisks } from './install-disks.ts';

/** Whether new disks have room beside the old ones. */
export interface RoomBeside {
  readonly isEnough: boolean;
  readonly neededBytes: number;
  readonly freeBytes: number;
}

/** Without a template it is one without a record. */
type Known = Pick<InstanceRecord, 'uuid'> & Partial<Pick<InstanceRecord, 'diskTemplate'>>;

/** What makes disks those of a new instance. */
interface NewDisks<Result> {
  /** Puts its record into the store: from then on they are its own. */
  readonly commit: () => Promise<Result>;
  readonly isThere: (uuid: string) => Promise<boolean>;
}

/**
 * Sparse raw files, one directory per instance, or volumes, that only root may open: QEMU gets
 * descriptors.
 */
export interface InstanceDisks {
  pathOf(instance: InstanceRecord, index: number): string;
  /**
   * @param instance whose disks get more; without one, what is on this node's own file system
   * @throws AppError DISK_SPACE; HOST_PREREQUISITE, NOT_SUPPORTED (its folder for shared disks)
   */
  checkSpace(instance?: Pick<InstanceRecord, 'diskTemplate'>): Promise<void>;
  /**
   * @param bytes that new disks are going to take
   * @param instance whose disks they are; without one, they are on this node's own file system
   * @throws AppError DISK_SPACE; HOST_PREREQUISITE, NOT_SUPPORTED (its folder for shared disks)
   */
  requireRoom(bytes: number, instance?: Pick<InstanceRecord, 'diskTemplate'>): Promise<void>;
  /**
   * Keeps everybody off the disks of an instance that does not run, until it is disposed of.
   * @throws AppError DISK_IN_USE, DISK_MISSING, NOT_SUPPORTED: one is a link
   */
  hold(instance: InstanceRecord): Promise<AsyncDisposable>;
  freeBytes(): Promise<number>;
  /** Size of the file system. */
  totalBytes(): Promise<number>;
  /**
   * Whether a thin pool with its volumes has no room for what its guest writes; null: it has no
   * volumes, and what it writes takes room of the file system.
   */
  isPoolFull(instance: Pick<InstanceRecord, 'uuid'>): Promise<boolean | null>;
  /** What `remove` leaves, as GROUP/VOLUME: the node has no such group in this moment. */
  listAbsent(
    instance: Pick<InstanceRecord, 'diskTemplate' | 'disks' | 'snapshots'>,
  ): Promise<readonly string[]>;
  /** Room where new volumes are made, as of some seconds ago; without what has no place. */
  volumeRoom(): Promise<Pick<HostRoom, 'volumes' | 'zvols'>>;
  /**
   * Blocks that its disks have and write anew in their place: none of one with snapshots, which
   * share them.
   */
  ownBytes(instance: Pick<InstanceRecord, 'uuid'>): Promise<number>;
  /**
   * Whether the file system can hold files of these sizes at all, sparse as they are; of volumes,
   * whether there is room for what they do not have yet.
   * @throws AppError VALIDATION; DISK_SPACE, HOST_PREREQUISITE (volumes)
   */
  checkSizes(
    disks: readonly (Pick<InstanceDisk, 'sizeBytes'> & Partial<InstanceDisk>)[],
    instance: Pick<InstanceRecord, 'diskTemplate'>,
  ): Promise<void>;
  /**
   * Before anything is asked for by a path through its folder, which may be a link: who asks a file
   * server that is away, hangs.
   * @throws AppError HOST_PREREQUISITE, NOT_SUPPORTED
   */
  reach(instance: Known): Promise<void>;
  /**
   * Whether nobody has them open, a machine that this daemon knows nothing of included.
   * @throws AppError DISK_IN_USE
   */
  checkUnused(instance: Known): Promise<void>;
  /**
   * Whether an installation may empty them in their place.
   * @throws AppError DISK_IN_USE; CONFLICT: an administrator's snapshots of LVM would be lost
   */
  checkOverwrite(instance: InstanceRecord): Promise<void>;
  /**
   * Makes what is missing and empties what is there: an installation starts from zeros.
   * @throws AppError DISK_IN_USE, DISK_FULL
   */
  createEmpty(instance: InstanceRecord): Promise<void>;
  /**
   * What new disks are going to take is not known beforehand: as much as the old ones have or the
   * image is large, whichever is more, is a guess, and no more than what they may.
   */
  roomBeside(instance: InstanceRecord, imageBytes: number): Promise<RoomBeside>;
  /**
   * Where an installation writes. Its room is kept until the answer is disposed of.
   * @param instance as the installation makes it
   */
  openForInstall(
    instance: InstanceRecord,
    where:
      { readonly kind: 'in-place' } | { readonly kind: 'beside'; readonly neededBytes: number },
  ): InstallDisks & Disposable;
  /**
   * Makes the file of a disk that no machine has larger, and syncs it.
   * @throws AppError DISK_IN_USE, DISK_MISSING, NOT_SUPPORTED: it is a link
   */
  grow(instance: InstanceRecord, index: number, sizeBytes: number): Promise<void>;
  /**
   * Makes room for a disk that a machine has and is going to make larger itself: a file needs none.
   * @throws AppError DISK_MISSING, DISK_FULL
   */
  growBelow(instance: InstanceRecord, index: number, sizeBytes: number): Promise<void>;
  /**
   * Makes the files be what the record is going to say, around the commit that says it.
   * @param after the record's disks with some at their end, or without one
   * @throws AppError DISK_IN_USE, DISK_MISSING, DISK_FULL
   */
  change<Result>(
    instance: InstanceRecord,
    after: InstanceRecord['disks'],
    commit: () => Promise<Result>,
  ): Promise<Result>;
  /**
   * Refuses disks for which there is no room, where they cannot share the blocks of others.
   * @throws AppError DISK_MISSING, DISK_SPACE, NOT_SUPPORTED: one is a link
   */
  checkCopy(from: InstanceRecord): Promise<void>;
  /**
   * Makes the disks and EFI variables of a new instance from those of one that does not run, and
   * hands them over when `commit` has put its record into the store; a failure or a kill before
   * leaves nothing.
   * @throws AppError DISK_IN_USE, DISK_MISSING, DISK_SPACE, DISK_FULL
   */
  copy<Result>(
    from: InstanceRecord,
    to: Pick<InstanceRecord, 'uuid' | 'instanceId'>,
    how: Pick<CopyRequest, 'signal' | 'onProgress'> & NewDisks<Result>,
  ): Promise<Result>;
  /**
   * Makes the disks of a new instance, as `copy` does.
   * @throws what `fill` throws, DISK_FULL
   */
  make<Result>(
    to: Pick<InstanceRecord, 'uuid'>,
    how: NewDisks<Result> & { readonly fill: (dir: string) => Promise<void> },
  ): Promise<Result>;
  /**
   * UUIDs of the instances that copies were made for, by jobs that have ended, or that arrive, and
   * that did not get them.
   */
  listCopies(): Promise<readonly string[]>;
  /**
   * Ends what a killed copy or move has left; while nobody can say whose it is, or a job still
   * copies, it stays. No error where there is nothing.
   */
  settleCopy(uuid: string, isThere: (uuid: string) => Promise<boolean>): Promise<void>;
  /**
   * For jobs, before they use the disks: a reinstallation's, a copy's or a snapshot's may still
   * have to take their place.
   * @param instance on record
   * @param onZeroing for a start, which waits for nothing that is long: called with what goes on
   * after this; whoever uses the disks waits for it
   * @see takeLeftCopy, settleDisks, settleVariables, settleLeaving, settleSnapshots
   */
  settle(
    instance: Pick<
      InstanceRecord,
      'uuid' | 'instanceId' | 'restoreId' | 'installState' | 'diskTemplate' | 'disks' | 'snapshots'
    >,
    onZeroing?: (zeroing: Promise<void>) => void,
  ): Promise<readonly string[]>;
  /**
   * Where its UEFI firmware keeps what it remembers, of one installation: goes with the disks, not
   * with an export.
   */
  variablesPathOf(instance: Pick<InstanceRecord, 'uuid' | 'instanceId'>): string;
  /** Where its seed disk is while its machine is being started. */
  seedPathOf(instance: Pick<InstanceRecord, 'uuid'>): string;
  /**
   * Takes the name from the seed disk, which holds the user's data: who opened it, has it. It is no
   * error when there is none.
   */
  removeSeed(instance: Known): Promise<void>;
  /**
   * Whether shared disks are there, and nobody has them.
   * @throws AppError DISK_MISSING, DISK_IN_USE, HOST_PREREQUISITE
   */
  checkShared(instance: InstanceRecord): Promise<void>;
  /**
   * Forgets the shared disks of an instance that another node has. No error where there are none.
   */
  detach(uuid: string): Promise<void>;
  /** Whether an instance has disks that are files, here or in the shared folder. */
  hasFiles(instance: Pick<InstanceRecord, 'uuid'>): Promise<boolean>;
  /** UUIDs of the instances that have disks here. */
  list(): Promise<readonly string[]>;
  /** The files that are there. @throws AppError DISK_MISSING naming the file */
  activate(instance: InstanceRecord): Promise<readonly ActiveDisk[]>;
  /**
   * Removes the instance's disks; it is no error when there are none.
   * @param beforeIt done when nobody has them, nor can get them, and they are all still there
   * @throws AppError DISK_IN_USE
   */
  remove(instance: Known, beforeIt?: () => Promise<void>): Promise<void>;
}
