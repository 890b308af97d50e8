import assert from 'node:assert/strict';
import { isAppError } from '#shared/errors/app-error.ts';
import { TarGate } from '../../../appliance/agent/overlay/tar-gate.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { randomArchive } from '../../appliance/hostile/random-archive.ts';
import { mutate } from '../mutate.ts';
import { assertRefusal, openPure, type Target } from '../target.ts';

/** What the gate ends an archive with. */
const END_MARK_BYTES = 1024;
/** Lengths of chunks: of whole archives, of blocks, and of none of both. */
const CHUNKS = [1 << 20, 512, 77];

/**
 * Packages: refused, or let through byte for byte, the same however they are cut. What GNU tar
 * makes of them is judged beside it.
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
  // What a refused archive had let through before depends on where it was cut, and is thrown away.
  return refusal === null ? { passedOn, passed: { ...gate.passed } } : refusal;
}
