import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extractVmlinux } from '../../../appliance/image/vmlinux.ts';

const PVH_NOTE = Buffer.from([4, 0, 0, 0, 8, 0, 0, 0, 18, 0, 0, 0, 0x58, 0x65, 0x6e, 0]);
const kernel = Buffer.concat([Buffer.from('\x7fELF', 'latin1'), Buffer.alloc(64, 'k'), PVH_NOTE]);

/** A bzImage with a kernel as LZ4's legacy frame: one block, literals and a match that repeats. */
function bzImageOf(payload: Buffer, repeats: number): Buffer {
  const extended = (length: number): readonly number[] => [
    ...Array.from({ length: Math.floor((length - 15) / 255) }, () => 255),
    (length - 15) % 255,
  ];
  const block = Buffer.concat([
    Buffer.from([0xff, ...extended(payload.length)]),
    payload,
    // The last byte again, so many times.
    Buffer.from([1, 0, ...extended(repeats - 4)]),
    Buffer.from([0x10, 0x65]),
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(block.length);
  return Buffer.concat([Buffer.alloc(512, 'b'), Buffer.from([2, 0x21, 0x4c, 0x18]), length, block]);
}

test('the plain kernel comes out of a bzImage as it went in', () => {
  const decoded = extractVmlinux(bzImageOf(kernel, 300));
  assert.deepEqual(
    decoded,
    Buffer.concat([kernel, Buffer.alloc(300, kernel.at(-1)), Buffer.from('e')]),
  );
});

test('a kernel that does not come out the same twice is left in its bzImage', () => {
  const other = Buffer.concat([kernel, Buffer.from('x')]);
  for (const answers of [
    [kernel, other],
    [other, kernel],
    [kernel, null],
  ]) {
    const left = [...answers];
    assert.equal(
      extractVmlinux(bzImageOf(kernel, 300), () => left.shift() ?? null),
      null,
    );
  }
  assert.equal(extractVmlinux(bzImageOf(Buffer.alloc(90, 'n'), 300)), null, 'no kernel at all');
});
