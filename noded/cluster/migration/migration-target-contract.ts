import type { Duplex } from 'node:stream';
import type { GuestHandover } from '#shared/contract/guest-handover.ts';
import type { MachineExpected, MachineNature } from '#shared/contract/migration.ts';
import type { ArrivalBegun, ArrivalEnded, MovedFile, RemainsEnded } from '#shared/contract/move.ts';

/**
 * Instances that come from other nodes: their files grow in a folder that is nobody's, and the room
 * that they need is kept. Nothing of it counts before the record says that the instance is this
 * node's, which the node that has it writes; `end` finds out, and so does the next daemon.
 */
export interface MigrationTarget extends AsyncDisposable {
  /**
   * Whether the instance can be taken; nothing is changed.
   * @throws AppError NODE_DRAINED, NO_ROOM, CONFLICT, and what it lacks of what the instance names
   */
  check(uuid: string, signal: AbortSignal, nature?: MachineNature): Promise<void>;
  /**
   * One that was under way is ended first.
   * @throws as `check`, and NOT_ALLOWED (the instance is not the asker's), VALIDATION, DISK_FULL
   */
  begin(
    at: Pick<IncomingFile, 'uuid' | 'from'>,
    files: readonly MovedFile[],
    signal: AbortSignal,
  ): Promise<ArrivalBegun>;
  /** @throws AppError NOT_FOUND (it has ended, or is whole), VALIDATION, DISK_FULL */
  write(at: IncomingFile, message: Buffer): Promise<void>;
  /**
   * From now on the disks are the instance's as soon as the record names this node. The same
   * digests again change nothing.
   * @throws AppError NOT_FOUND, CONFLICT, DISK_FULL
   */
  verify(
    at: Omit<IncomingFile, 'name'>,
    digests: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Makes the machine of a guest that is going to be sent.
   * @throws AppError NOT_FOUND, NOT_SUPPORTED
   */
  expect(
    at: Omit<IncomingFile, 'name'>,
    expected: MachineExpected,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * What the guest that is expected has with metad, until it goes on. @throws AppError NOT_FOUND
   */
  handOver(at: Omit<IncomingFile, 'name'>, handover: GuestHandover): Promise<void>;
  /**
   * What the other node's QEMU says to this one's: of a disk, or of memory.
   * @throws AppError NOT_FOUND
   */
  openStream(at: IncomingFile): Promise<Duplex>;
  /**
   * What is here of its disks outlives a power cut: later there is less to wait for.
   * @throws AppError NOT_FOUND
   */
  sync(at: Omit<IncomingFile, 'name'>): Promise<void>;
  /**
   * From now on the guest that was expected goes on as soon as the record names this node.
   * @returns the record's serial number: who began anew since, finds another one
   * @throws AppError NOT_FOUND, MIGRATION_FAILED
   */
  awaitGuest(at: Omit<IncomingFile, 'name'>, signal: AbortSignal): Promise<number>;
  /** @throws AppError NOT_ALLOWED (another node brings it) */
  end(at: Pick<IncomingFile, 'uuid' | 'from'>): Promise<ArrivalEnded>;
  /**
   * Ends at once what is here of moves of an instance that the asker has, in either direction.
   * @throws AppError NOT_ALLOWED, and as `settleDeparture`
   */
  endRemains(at: Pick<IncomingFile, 'uuid' | 'from'>): Promise<RemainsEnded>;
}

export interface IncomingFile {
  readonly uuid: string;
  readonly session: string;
  readonly name: string;
  /** The node that asks; undefined for who asks on this one. */
  readonly from?: string | undefined;
}
