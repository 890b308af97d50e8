import type { InstanceDisk } from '#shared/contract/instance.ts';
import type { AppError } from '#shared/errors/app-error.ts';
import type { Here } from './check-group.ts';
import type { ThinPool } from './thin-pools.ts';
import type { OwnVolume } from './volume-names.ts';

export interface VolumeGroup {
  readonly name: string;
  /** The system's own, which a copy of a group gets anew (LVM: vgimportclone). */
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
  /** The volume that it is a snapshot of; empty: of none. */
  readonly origin: string;
  /** Its device is there, and nothing of it is left to be done. */
  readonly isActive: boolean;
  /** The thin pool that its blocks come from; empty: it has extents of its own. */
  readonly pool: string;
  readonly isPool: boolean;
  /** Of a pool: a block that it gives away holds zeros first. */
  readonly isZeroing: boolean;
  /** Of a thin volume or a pool: how much of it has blocks, from 0 to 1; null: nobody knows. */
  readonly dataShare: number | null;
  /** Of a pool: as above, or how full what LVM notes down is, whichever is more. */
  readonly usedShare: number | null;
}

/** What is said of a new one. */
export type NewVolume = Pick<Volume, 'group' | 'name' | 'sizeBytes' | 'tags'> &
  Partial<Pick<Volume, 'pool'>>;

export type Named = Pick<Volume, 'group' | 'name'>;

/** Where a volume is. */
export interface Place {
  readonly group: string;
  /** The thin pool that its blocks come from; undefined: it has extents of its own. */
  readonly pool: string | undefined;
}

/**
 * What keeps volumes of instances, by its own commands. Each change is on its devices when it
 * resolves. Words as LVM's: of ZFS a group is a dataset that volumes are in, all of them are thin,
 * and the room that it has is its thin pool.
 */
export interface VolumeSystem {
  /** What the volumes are, for refusals. */
  readonly label: string;
  /** The name of the room for new volumes in the report of a node. */
  readonly roomName: 'volumes' | 'zvols';
  readonly errors: VolumeErrors;
  placeOf(disk: Pick<InstanceDisk, 'vg' | 'pool' | 'dataset'>): Place;
  /** Reads a place as the cluster names it for new disks. */
  parsePlace(place: string): Place;
  pathOf(volume: Named): string;
  /** Whether its device is there, and is that volume's. */
  isThere(volume: Named): Promise<boolean>;
  /** @throws AppError HOST_PREREQUISITE: it is not installed */
  listGroups(): Promise<readonly VolumeGroup[]>;
  /** All there are, whosoever. @throws AppError HOST_PREREQUISITE */
  listVolumes(): Promise<readonly Volume[]>;
  /**
   * Whether LVM, asked by anybody else on this host, looks for groups inside of these volumes:
   * those would be what guests wrote.
   * @throws AppError HOST_PREREQUISITE
   */
  isScanned(): Promise<boolean>;
  /**
   * What it holds is what its extents held before; of a thin pool that zeroes, zeros.
   * @throws AppError DISK_FULL
   */
  create(volume: NewVolume): Promise<void>;
  /**
   * Makes another one of what a thin volume holds in this moment, in the same pool.
   * @throws AppError DISK_FULL
   */
  clone(
    origin: Named,
    made: Pick<Volume, 'name' | 'tags'> & { readonly isActive: boolean },
  ): Promise<void>;
  /** What it gets is as in `create`. @throws AppError DISK_FULL */
  extend(volume: Named, sizeBytes: number): Promise<void>;
  rename(volume: Named, name: string): Promise<void>;
  /** @throws AppError COMMAND_FAILED: somebody has it open */
  remove(volume: Named): Promise<void>;
  activate(volume: Named): Promise<void>;
  tag(volume: Named, change: { readonly add: string } | { readonly remove: string }): Promise<void>;
  /**
   * Writes zeros from one byte to another: the kernel promises that they are read, however the
   * device does it. A discard promises nothing.
   */
  zero(volume: Named, fromBytes: number, toBytes: number): Promise<void>;
}

/** What is refused, in the system's own words, with what to do. */
export interface VolumeErrors {
  /** HOST_PREREQUISITE */
  noGroup(name: string, there: readonly VolumeGroup[]): AppError;
  /** VALIDATION: a disk that is not made of whole extents. */
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
  /** CONFLICT: an administrator's snapshots would go with it. */
  dependents(volume: OwnVolume, first: string): AppError;
  /** DISK_MISSING */
  noDevice(instance: { readonly name: string }, index: number, path: string): AppError;
  /** DISK_MISSING: of a disk's volume in a snapshot. */
  noSnapshot(snapshot: string, index: number): AppError;
}
