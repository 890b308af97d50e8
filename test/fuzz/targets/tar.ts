import assert from 'node:assert/strict';
import { isAppError } from '#shared/errors/app-error.ts';
import { TarGate } from '../../../appliance/agent/overlay/tar-gate.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { randomArchive } from '../../appliance/hostile/random-archive.ts';
import { mutate } from '../mutate.ts';
import { assertRefusal, openPure, type Target } from '../target.ts';

/** The gate appends this end mark to an archive. */
const END_MARK_BYTES = 1024;
/** Chunk lengths: whole archives, blocks, and unaligned pieces. */
const CHUNKS = [1 << 20, 512, 77];

/**
 * Checks packages: they are refused, or passed on unchanged, and chunks do not affect the result.
 * Another test compares with GNU tar.
 */
export function tarTarget(createGate: () => Gate = () => new TarGate()): Target {
  return { name: 'tar', generate, open: () => openPure((input) => check(input, createGate)) };
}

type Gate = Pick<TarGate, 'push' | 'end' | 'passed'>;

function generate(random: SeededRandom): Buffer {
  const archive = randomArchive(random.below(2 ** 31));
  return random.below(3) === 0 ? mutate(archive, random) : archive;
}

function check(input: Buffer, createGate: () => Gate): void {
  const [whole, ...others] = CHUNKS.map((bytes) => pass(input, bytes, createGate()));
  for (const other of others) assert.deepEqual(other, whole, 'it depends on how it was cut');
}

function pass(input: Buffer, chunkBytes: number, gate: Gate): unknown {
  const out: Buffer[] = [];
  let refusal: unknown = null;
  try {
    for (let at = 0; at < input.length; at += chunkBytes)
      out.push(...gate.push(input.subarray(at, at + chunkBytes)));
    gate.end();
  } catch (error) {
    assertRefusal(error, ['PACKAGE_INVALID', 'PACKAGE_UNSAFE']);
    refusal = isAppError(error) && [error.code, error.message];
  }
  const passedOn = Buffer.concat(out);
  assert.ok(passedOn.length <= input.length + END_MARK_BYTES, 'more came out than went in');
  // Output before a refusal depends on the chunks, and the caller discards it.
  return refusal === null ? { passedOn, passed: { ...gate.passed } } : refusal;
}
