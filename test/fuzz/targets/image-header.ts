import assert from 'node:assert/strict';
import {
  describeFormat,
  HEADER_BYTES,
  recognizeImage,
  vdiMinimumBytes,
} from '../../../appliance/agent/image/format.ts';
import type { SeededRandom } from '../../lab/seeded-random.ts';
import { mutate } from '../mutate.ts';
import { openPure, type Target } from '../target.ts';

/** The parser truncates longer names. */
const MAX_NAME_LENGTH = 64 * 1024;

function qcow2(random: SeededRandom): Buffer {
  const head = Buffer.alloc(random.pick([72, 104, 512, 4096]));
  head.write('QFI\xfb', 0, 'latin1');
  head.writeUInt32BE(random.pick([2, 3, 3, 4]), 4);
  if (random.below(2) === 0) {
    head.writeBigUInt64BE(BigInt(random.pick([0, 104, 500, 2 ** 40])), 8);
    head.writeUInt32BE(random.pick([0, 9, 1023, 2 ** 32 - 1]), 16);
  }
  if (head.length >= 104) {
    head.writeUInt32BE(random.pick([0, 4, 4, 255]), 76);
    head.writeUInt32BE(random.pick([104, 112, 0, 2 ** 32 - 1]), 100);
  }
  if (head.length >= 512) {
    head.writeUInt32BE(random.pick([0x44415441, 0xe2792aca, 1]), 104);
    head.writeUInt32BE(random.pick([0, 4, 2 ** 32 - 1, 200]), 108);
    head.write('data.raw', 112);
  }
  return head;
}

function vmdk(random: SeededRandom): Buffer {
  const head = Buffer.alloc(2048);
  head.write('KDMV', 0);
  head.writeBigUInt64LE(BigInt(random.pick([1, 2, 2 ** 50])), 28);
  head.writeBigUInt64LE(BigInt(random.pick([1, 20, 2 ** 50])), 36);
  head.write(
    `# Disk DescriptorFile\nCID=1\nparentCID=${random.pick(['ffffffff', '12345678', 'FFFFFFFF'])}\nparentFileNameHint="base.vmdk"\n`,
    512,
  );
  return head;
}

function descriptor(): Buffer {
  return Buffer.from(
    '# Disk DescriptorFile\nversion=1\nCID=fffffffe\nRW 4192256 SPARSE "disk-s001.vmdk"\nRW 4192256 FLAT "disk-f001.vmdk" 0\n',
  );
}

function vdi(random: SeededRandom): Buffer {
  const head = Buffer.alloc(512);
  head.writeUInt32LE(0xbeda107f, 64);
  head.writeUInt32LE(1 + random.below(5), 76);
  head.writeUInt32LE(random.pick([0, 1024, 2 ** 32 - 1]), 344);
  return head;
}

const MAGICS = [
  'QFI\xfb',
  'KDMV',
  'COWD',
  'vhdxfile',
  'conectix',
  'cxsparse',
  '\x1f\x8b\x08',
  '\xfd7zXZ\0',
  '\x28\xb5\x2f\xfd',
  'BZh91AY&SY',
  '# Disk DescriptorFile',
];

/** Checks the first bytes of image files: they always give one known format with bounded names. */
export function imageHeaderTarget(recognize: typeof recognizeImage = recognizeImage): Target {
  return {
    name: 'image-header',
    generate,
    open: () => openPure((input) => check(input, recognize)),
  };
}

function generate(random: SeededRandom): Buffer {
  const make = random.pick([
    ...[qcow2, qcow2, vmdk, descriptor, vdi],
    () =>
      Buffer.concat([Buffer.from(random.pick(MAGICS), 'latin1'), Buffer.alloc(random.below(200))]),
  ]);
  return mutate(make(random), random).subarray(0, HEADER_BYTES);
}

function check(input: Buffer, recognize: typeof recognizeImage): void {
  const format = recognize(input);
  assert.deepEqual(recognize(Buffer.from(input)), format, 'it depends on something else');
  assert.ok(describeFormat(format).length < 200);
  if (format.kind === 'container') {
    assert.ok((format.external?.name.length ?? 0) <= MAX_NAME_LENGTH);
    if (format.format === 'vdi') assert.ok(vdiMinimumBytes(input) >= 0);
    if (input.subarray(0, 4).equals(Buffer.from('QFI\xfb', 'latin1')) && input.length >= 72)
      assert.equal(
        format.external?.role === 'backing file',
        input.readBigUInt64BE(8) !== 0n,
        'a backing file that QEMU would follow',
      );
  }
}
