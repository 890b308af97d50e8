import type { ActiveDisk } from '#shared/contract/api.ts';
import type { HostRoom } from '#shared/contract/host-room.ts';
import type { InstanceRecord } from '#shared/contract/instance.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { CopyWatch } from './copy-disks.ts';
import type {
  CopyVerbs,
  DiskDriver,
  DiskDrivers,
  HeldForRemoval,
  InstallPlace,
  Known,
  VolumeVerbs,
} from './disk-driver.ts';
import { holdImages } from './hold-images.ts';
import type { InstallDisks } from './install-disks.ts';
import { type FolderParts, InstanceFolders, type NewDisks } from './instance-folders.ts';
import { listUnfinished, type SnapshotDisks } from './snapshot-disks.ts';

/** The verbs that a driver handles alone. `DiskDriver` documents them. */
type Routed = Pick<
  DiskDriver,
  'pathOf' | 'settle' | 'checkUnused' | 'checkOverwrite' | 'checkSizes' | 'roomBeside'
>;

/**
 * Does everything with the disks of instances. The record's disk template chooses the driver;
 * without a record, the folder decides.
 */
export class InstanceDisks extends InstanceFolders implements Routed {
  readonly #drivers: DiskDrivers;
  readonly snapshots: SnapshotDisks = {
    check: (instance, mayCopy) => this.#of(instance).snapshots.check(instance, mayCopy),
    take: (instance, ...how) => this.#of(instance).snapshots.take(instance, ...how),
    checkRestore: (instance, from) => this.#of(instance).snapshots.checkRestore(instance, from),
    restore: (instance, ...how) => this.#of(instance).snapshots.restore(instance, ...how),
    remove: (instance, ...how) => this.#of(instance).snapshots.remove(instance, ...how),
    listForgotten: (instance) => this.#of(instance).snapshots.listForgotten(instance),
    isUnfinished: async (uuid) => {
      await this.reach({ uuid });
      return (await listUnfinished(this.dirOf({ uuid }))).length > 0;
    },
  };

  constructor(
    disksDir: string,
    parts: FolderParts,
    makeDrivers: (folders: InstanceFolders) => DiskDrivers,
  ) {
    super(disksDir, parts);
    this.#drivers = makeDrivers(this);
  }

  readonly pathOf: DiskDriver['pathOf'] = (instance, index) =>
    this.#of(instance).pathOf(instance, index);

  readonly settle: DiskDriver['settle'] = (instance, onZeroing) =>
    this.#of(instance).settle(instance, onZeroing);

  readonly checkUnused: DiskDriver['checkUnused'] = (instance) =>
    this.#of(instance).checkUnused(instance);

  readonly checkOverwrite: DiskDriver['checkOverwrite'] = (instance) =>
    this.#of(instance).checkOverwrite(instance);

  readonly checkSizes: DiskDriver['checkSizes'] = (disks, instance) =>
    this.#of(instance).checkSizes(disks, instance);

  readonly roomBeside: DiskDriver['roomBeside'] = (instance, imageBytes) =>
    this.#of(instance).roomBeside(instance, imageBytes);

  /** Returns the disks with their paths. @throws AppError DISK_MISSING naming the path */
  async activate(instance: InstanceRecord): Promise<readonly ActiveDisk[]> {
    await this.#of(instance).requireDisks(instance);
    return instance.disks.map(({ name, sizeBytes }, index) => {
      return { index, name, sizeBytes, path: this.pathOf(instance, index) };
    });
  }

  /** @see DiskDriver.hold */
  async hold(instance: InstanceRecord): Promise<AsyncDisposable> {
    await this.settle(instance);
    return this.#of(instance).hold(instance);
  }

  /** @see DiskDriver.openForInstall */
  openForInstall(instance: InstanceRecord, where: InstallPlace): InstallDisks & Disposable {
    const disks = this.#of(instance).openForInstall(instance, where);
    const create = async (): Promise<void> => {
      await this.makeFolder(instance);
      await using held = await holdImages(this.dirOf(instance));
      void held;
      await disks.create();
    };
    return { ...disks, create };
  }

  /**
   * Makes missing disks and empties the others: an installation starts from zeros.
   * @throws AppError DISK_IN_USE, DISK_FULL
   */
  async createEmpty(instance: InstanceRecord): Promise<void> {
    using disks = this.openForInstall(instance, { kind: 'in-place' });
    await disks.create();
    await disks.sync();
  }

  /** @see DiskDriver.grow */
  async grow(instance: InstanceRecord, index: number, sizeBytes: number): Promise<void> {
    await this.settle(instance);
    await this.#of(instance).grow(instance, index, sizeBytes);
  }

  /**
   * Makes room for a disk that a QEMU process has open and then enlarges itself. A file needs none.
   * @throws AppError DISK_MISSING, DISK_FULL
   */
  async growBelow(instance: InstanceRecord, index: number, sizeBytes: number): Promise<void> {
    const { volumes } = this.#of(instance);
    if (volumes === undefined) return;
    await this.settle(instance);
    await volumes.growBelow(instance, index, sizeBytes);
  }

  /** @see DiskDriver.change */
  async change<Result>(
    instance: InstanceRecord,
    after: InstanceRecord['disks'],
    commit: () => Promise<Result>,
  ): Promise<Result> {
    await this.settle(instance);
    await this.activate(instance);
    return this.#of(instance).change(instance, after, commit);
  }

  /**
   * Refuses disks that cannot be copied or moved as files.
   * @throws AppError NOT_SUPPORTED
   */
  requireFiles(instance: InstanceRecord, done: 'copied' | 'moved'): CopyVerbs {
    const { copy, label } = this.#of(instance);
    if (copy !== undefined) return copy;
    const { name } = instance;
    throw new AppError('NOT_SUPPORTED', `'${name}' has ${label}, which cannot be ${done}`, {
      details: { name },
      hint: `Export it instead (gnt-backup export ${name}); the import creates disks with the template file.`,
    });
  }

  /** @throws AppError DISK_MISSING, DISK_SPACE, NOT_SUPPORTED */
  async checkCopy(from: InstanceRecord): Promise<void> {
    const copy = this.requireFiles(from, 'copied');
    await this.settle(from);
    await copy.check(from);
  }

  /**
   * Copies the disks and EFI variables of a stopped instance for a new one. A failure or a kill
   * before the commit leaves nothing.
   * @throws AppError DISK_IN_USE, DISK_MISSING, DISK_SPACE, DISK_FULL, NOT_SUPPORTED
   */
  async copy<Result>(
    from: InstanceRecord,
    to: Pick<InstanceRecord, 'uuid' | 'instanceId'>,
    how: CopyWatch & NewDisks<Result>,
  ): Promise<Result> {
    const copy = this.requireFiles(from, 'copied');
    await using held = await this.hold(from);
    void held;
    return await this.make(to, { ...how, fill: (dir) => copy.fill(dir, from, to, how) });
  }

  /** Returns the room for new volumes, some seconds old, without storage that has no place. */
  async volumeRoom(): Promise<Pick<HostRoom, 'volumes' | 'zvols'>> {
    const drivers = Object.values(this.#drivers);
    const rooms = await Promise.all(drivers.flatMap(({ volumes }) => volumes?.room() ?? []));
    return rooms.reduce((all, room) => ({ ...all, ...room }), {});
  }

  /**
   * Returns true if a pool with volumes of the instance is too full for further writes; null if it
   * has no volumes, so that the file system's room decides.
   */
  async isPoolFull(instance: Pick<InstanceRecord, 'uuid'>): Promise<boolean | null> {
    for (const volumes of this.#volumesOf({ uuid: instance.uuid })) {
      const isFull = await volumes.isPoolFull({ uuid: instance.uuid });
      if (isFull !== null) return isFull;
    }
    return null;
  }

  /**
   * Returns the volumes that `remove` leaves, as GROUP/VOLUME: the node does not have their groups.
   */
  async listAbsent(
    instance: Pick<InstanceRecord, 'diskTemplate' | 'disks' | 'snapshots'>,
  ): Promise<readonly string[]> {
    return (await this.#of(instance).volumes?.listAbsent(instance)) ?? [];
  }

  /**
   * Removes all disks. Does nothing without disks.
   * @param beforeIt called when all disks are locked and still there
   * @throws AppError DISK_IN_USE; CONFLICT: an administrator's snapshots would be lost
   */
  async remove(instance: Known, beforeIt?: () => Promise<void>): Promise<void> {
    await using stack = new AsyncDisposableStack();
    const held: HeldForRemoval[] = [];
    for (const volumes of this.#volumesOf(instance))
      held.push(stack.use(await volumes.holdForRemoval(instance)));
    await this.removeFolder(instance, async () => {
      await beforeIt?.();
      for (const one of held) await one.remove();
    });
  }

  #of({ diskTemplate = 'file' }: Partial<Pick<InstanceRecord, 'diskTemplate'>>): DiskDriver {
    return this.#drivers[diskTemplate];
  }

  /** Without a record, any template may have made volumes of the instance. */
  #volumesOf(instance: Known): readonly VolumeVerbs[] {
    const drivers =
      instance.diskTemplate === undefined ? Object.values(this.#drivers) : [this.#of(instance)];
    return drivers.flatMap(({ volumes }) => volumes ?? []);
  }
}
