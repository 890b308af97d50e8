import type { Duplex } from 'node:stream';
import type { GuestHandover } from '#shared/contract/guest-handover.ts';
import type { MachineExpected, MachineNature } from '#shared/contract/migration.ts';
import type { ArrivalBegun, ArrivalEnded, MovedFile, RemainsEnded } from '#shared/contract/move.ts';

/**
 * Receives instances from other nodes. Their files grow in a separate folder, with reserved room.
 * They count only after the sending node has written this node into the record; `end` and the next
 * daemon read it.
 */
export interface MigrationTarget extends AsyncDisposable {
  /**
   * Checks whether the instance can be taken, without a change.
   * @throws AppError NODE_DRAINED, NO_ROOM, CONFLICT, and missing things that the instance names
   */
  check(uuid: string, signal: AbortSignal, nature?: MachineNature): Promise<void>;
  /**
   * Starts a session, after the end of an earlier one.
   * @throws as `check`, and NOT_ALLOWED (the caller does not own the instance), VALIDATION,
   * DISK_FULL
   */
  begin(
    at: Pick<IncomingFile, 'uuid' | 'from'>,
    files: readonly MovedFile[],
    signal: AbortSignal,
  ): Promise<ArrivalBegun>;
  /** @throws AppError NOT_FOUND (the session ended or is complete), VALIDATION, DISK_FULL */
  write(at: IncomingFile, message: Buffer): Promise<void>;
  /**
   * Opens a stream that receives a file in records.
   * @throws AppError NOT_FOUND, and the failure of an earlier stream of the file
   */
  openFile(at: IncomingFile): Promise<Duplex>;
  /**
   * Completes the disks. They belong to the instance as soon as the record names this node.
   * Idempotent for the same digests.
   * @throws AppError NOT_FOUND, CONFLICT, DISK_FULL
   */
  verify(
    at: Omit<IncomingFile, 'name'>,
    digests: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Starts a paused QEMU process for an incoming guest.
   * @throws AppError NOT_FOUND, NOT_SUPPORTED
   */
  expect(
    at: Omit<IncomingFile, 'name'>,
    expected: MachineExpected,
    signal: AbortSignal,
  ): Promise<void>;
  /** Takes over the incoming guest's state in metad. @throws AppError NOT_FOUND */
  handOver(at: Omit<IncomingFile, 'name'>, handover: GuestHandover): Promise<void>;
  /**
   * Opens a stream between the two QEMU processes for a disk or memory.
   * @throws AppError NOT_FOUND
   */
  openStream(at: IncomingFile): Promise<Duplex>;
  /** Syncs the received disks, to shorten later syncs. @throws AppError NOT_FOUND */
  sync(at: Omit<IncomingFile, 'name'>): Promise<void>;
  /**
   * Waits for the whole guest. It continues as soon as the record names this node.
   * @returns the record's serial number, which a new session would change
   * @throws AppError NOT_FOUND, MIGRATION_FAILED
   */
  awaitGuest(at: Omit<IncomingFile, 'name'>, signal: AbortSignal): Promise<number>;
  /** @throws AppError NOT_ALLOWED (another node sends it) */
  end(at: Pick<IncomingFile, 'uuid' | 'from'>): Promise<ArrivalEnded>;
  /**
   * Ends leftovers here of moves of an instance that the caller owns, in both directions.
   * @throws AppError NOT_ALLOWED, and as `settleDeparture`
   */
  endRemains(at: Pick<IncomingFile, 'uuid' | 'from'>): Promise<RemainsEnded>;
}

export interface IncomingFile {
  readonly uuid: string;
  readonly session: string;
  readonly name: string;
  /** The calling node; undefined for a local call. */
  readonly from?: string | undefined;
}

/** Names of the streams between two QEMU processes: memory, and disks by their names in QEMU. */
export const memoryName = 'memory';

export function nodeNameOf(index: number): string {
  return `disk${index}`;
}
