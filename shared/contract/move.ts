import { z } from 'zod';
import { KIB, MIB } from '../units/bytes.ts';
import { uuid } from './primitives.ts';

/** A file of an instance that moves: a disk or the variables of its UEFI firmware. */
export const movedFile = z.object({
  name: z.string().regex(/^(disk\d{1,3}\.raw|efi-variables-[0-9a-fA-F-]{36}\.fd)$/),
  sizeBytes: z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER),
});
export type MovedFile = z.infer<typeof movedFile>;

/** Above the number of files of any instance. */
const MAX_FILES = 256;

/** Files that a node will receive. */
export const arrivalRequest = z.object({ files: z.array(movedFile).max(MAX_FILES) });

/** @see noded/cluster/migration/migration-target.ts */
export const arrivalBegun = z.object({
  /** A new begin gets another session and ends this one. */
  session: uuid,
  /** The record's serial number. It must not change before the commit. */
  serialNo: z.number().int(),
  /** Whether files are received as streams. Release 0.2 receives single messages only. */
  takesStreams: z.boolean().default(false),
});
export type ArrivalBegun = z.infer<typeof arrivalBegun>;

/** The largest block of data in a message, in bytes. */
export const BLOCK_BYTES = 64 * KIB;
/** Header of a block: its offset in the file and its length. */
export const BLOCK_HEAD_BYTES = 8 + 4;
/** A message is sent when its blocks reach this size. */
export const BATCH_BYTES = MIB;
/** The longest message. */
export const MAX_BATCH_BYTES = BATCH_BYTES + BLOCK_BYTES + BLOCK_HEAD_BYTES;

/**
 * Header of a record in the stream of a file: length of the message that follows, and position in
 * the file up to which all data has been sent. The receiver answers with each position that it has
 * written, first with the one at which the stream must begin.
 */
export const RECORD_HEAD_BYTES = 4 + 8;
export const POSITION_BYTES = 8;

/** Digests of the sent data, by file name. */
export const arrivalDigests = z.object({ digests: z.record(z.string(), z.string()) });

export const arrivalEnded = z.object({
  /** Whether the instance belongs to that node now. */
  isTaken: z.boolean(),
  /** The instance belongs to that node, but its QEMU process has ended. */
  isLost: z.boolean().default(false),
});
export type ArrivalEnded = z.infer<typeof arrivalEnded>;

/** Remains of another node's instance that were removed. */
export const remainsEnded = z.object({
  /** The QEMU process or the disks of an unfinished move to the node. */
  hadArrived: z.boolean(),
  /** Disks that a move away from the node left behind. */
  hadLeft: z.boolean(),
});
export type RemainsEnded = z.infer<typeof remainsEnded>;
