import { z } from 'zod';
import { KIB, MIB } from '../units/bytes.ts';
import { uuid } from './primitives.ts';

/**
 * A file of an instance that moves: its disks, and what its UEFI firmware remembers of its
 * installation.
 */
export const movedFile = z.object({
  name: z.string().regex(/^(disk\d{1,3}\.raw|efi-variables-[0-9a-fA-F-]{36}\.fd)$/),
  sizeBytes: z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER),
});
export type MovedFile = z.infer<typeof movedFile>;

/** More than an instance can have. */
const MAX_FILES = 256;

/** What a node is going to be sent of an instance. */
export const arrivalRequest = z.object({ files: z.array(movedFile).max(MAX_FILES) });

/** @see noded/cluster/migration/migration-target.ts */
export const arrivalBegun = z.object({
  /** Who begins anew gets another one, and this one ends. */
  session: uuid,
  /** The record's: nobody may have changed it when its node is changed. */
  serialNo: z.number().int(),
});
export type ArrivalBegun = z.infer<typeof arrivalBegun>;

/** The largest block of data in a message, in bytes. */
export const BLOCK_BYTES = 64 * KIB;
/** The head of a block: where it is in its file, and how long it is. */
export const BLOCK_HEAD_BYTES = 8 + 4;
/** From so much on, blocks go in one message. */
export const BATCH_BYTES = MIB;
/** The longest message. */
export const MAX_BATCH_BYTES = BATCH_BYTES + BLOCK_BYTES + BLOCK_HEAD_BYTES;

/** SHA-256 of what was sent, by the name of the file. */
export const arrivalDigests = z.object({ digests: z.record(z.string(), z.string()) });

export const arrivalEnded = z.object({
  /** Whether the instance is that node's. */
  isTaken: z.boolean(),
  /** It is, but the machine in which its guest was to go on has ended. */
  isLost: z.boolean().default(false),
});
export type ArrivalEnded = z.infer<typeof arrivalEnded>;

/** What a node had of an instance that another one has, and has no more. */
export const remainsEnded = z.object({
  /** The machine or the disks of a move to it, which waited for its end. */
  hadArrived: z.boolean(),
  /** Disks that a move away from it had left there. */
  hadLeft: z.boolean(),
});
export type RemainsEnded = z.infer<typeof remainsEnded>;
