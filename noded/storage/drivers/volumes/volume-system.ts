import type { InstanceDisk } from '#shared/contract/instance.ts';
import type { AppError } from '#shared/errors/app-error.ts';
import type { Here } from './check-group.ts';
import type { ThinPool } from './thin-pools.ts';
import type { OwnVolume } from './volume-names.ts';

export interface VolumeGroup {
  readonly name: string;
  /** The system's UUID of the group; a copied group gets a new one (LVM: vgimportclone). */
  readonly uuid: string;
  readonly sizeBytes: number;
  readonly freeBytes: number;
  readonly extentBytes: number;
}

export interface Volume {
  readonly group: string;
  readonly groupUuid: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly tags: readonly string[];
  /** The volume that it is a snapshot of; empty for none. */
  readonly origin: string;
  /** Its device exists and no step is pending. */
  readonly isActive: boolean;
  /** The thin pool of its blocks; empty if it has its own extents. */
  readonly pool: string;
  readonly isPool: boolean;
  /** Of a pool: newly allocated blocks hold zeros. */
  readonly isZeroing: boolean;
  /** Of a thin volume or a pool: the allocated share, from 0 to 1; null if unknown. */
  readonly dataShare: number | null;
  /** Of a pool: the larger share of its data and metadata in use; null if unknown. */
  readonly usedShare: number | null;
}

/** The values that a new volume needs. */
export type NewVolume = Pick<Volume, 'group' | 'name' | 'sizeBytes' | 'tags'> &
  Partial<Pick<Volume, 'pool'>>;

export type Named = Pick<Volume, 'group' | 'name'>;

/** The group and pool of a volume. */
export interface Place {
  readonly group: string;
  /** The thin pool of its blocks; undefined if it has its own extents. */
  readonly pool: string | undefined;
}

/**
 * Runs a volume manager. Each change is on its devices when it resolves. The words are LVM's. For
 * ZFS a group is the dataset that contains the volumes, all volumes are thin, and the dataset's
 * room is its thin pool.
 */
export interface VolumeSystem {
  /** Describes the volumes in refusals. */
  readonly label: string;
  /** The key of its room in a node's report. */
  readonly roomName: 'volumes' | 'zvols';
  readonly errors: VolumeErrors;
  placeOf(disk: Pick<InstanceDisk, 'vg' | 'pool' | 'dataset'>): Place;
  /** Parses the place that the cluster configures for new disks. */
  parsePlace(place: string): Place;
  pathOf(volume: Named): string;
  /** Returns true if the device exists and belongs to that volume. */
  isThere(volume: Named): Promise<boolean>;
  /** @throws AppError HOST_PREREQUISITE: it is not installed */
  listGroups(): Promise<readonly VolumeGroup[]>;
  /** Returns all volumes, including those of other owners. @throws AppError HOST_PREREQUISITE */
  listVolumes(): Promise<readonly Volume[]>;
  /**
   * Returns true if LVM, as configured on this host, scans for groups inside these volumes. A guest
   * could have written them.
   * @throws AppError HOST_PREREQUISITE
   */
  isScanned(): Promise<boolean>;
  /**
   * Creates a volume. It holds the former content of its extents, or zeros in a thin pool that
   * zeroes.
   * @throws AppError DISK_FULL
   */
  create(volume: NewVolume): Promise<void>;
  /** Clones the present content of a thin volume, in the same pool. @throws AppError DISK_FULL */
  clone(
    origin: Named,
    made: Pick<Volume, 'name' | 'tags'> & { readonly isActive: boolean },
  ): Promise<void>;
  /**
   * Enlarges a volume; new extents hold the same content as in `create`.
   * @throws AppError DISK_FULL
   */
  extend(volume: Named, sizeBytes: number): Promise<void>;
  rename(volume: Named, name: string): Promise<void>;
  /** @throws AppError COMMAND_FAILED: it is open */
  remove(volume: Named): Promise<void>;
  activate(volume: Named): Promise<void>;
  tag(volume: Named, change: { readonly add: string } | { readonly remove: string }): Promise<void>;
  /**
   * Writes zeros to a range of bytes. The kernel guarantees that they read as zeros, unlike after a
   * discard.
   */
  zero(volume: Named, fromBytes: number, toBytes: number): Promise<void>;
}

/** Makes refusals in the system's own words, with a hint. */
export interface VolumeErrors {
  /** HOST_PREREQUISITE */
  noGroup(name: string, there: readonly VolumeGroup[]): AppError;
  /** VALIDATION: the size is not a multiple of the extent size. */
  oddSize(sizeBytes: number, group: VolumeGroup): AppError;
  /** DISK_SPACE */
  noRoom(neededBytes: number, group: VolumeGroup): AppError;
  /** HOST_PREREQUISITE */
  noPool(place: Place, there: readonly ThinPool[]): AppError;
  /** HOST_PREREQUISITE */
  leakyPool(pool: ThinPool): AppError;
  /** DISK_SPACE */
  fullPool(pool: ThinPool): AppError;
  /** CONFLICT: another node writes there. */
  foreign(volume: Named & { readonly node: string }, here: Pick<Here, 'nodeName'>): AppError;
  /** HOST_PREREQUISITE */
  scanned(): AppError;
  /** CONFLICT: the removal would destroy an administrator's snapshots. */
  dependents(volume: OwnVolume, first: string): AppError;
  /** DISK_MISSING */
  noDevice(instance: { readonly name: string }, index: number, path: string): AppError;
  /** DISK_MISSING: a snapshot lacks a disk's volume. */
  noSnapshot(snapshot: string, index: number): AppError;
}
