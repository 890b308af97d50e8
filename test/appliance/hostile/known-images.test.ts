import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ExternalFile, recognizeImage } from '../../../appliance/agent/image/format.ts';

/** Images of published attacks, each of which makes a tool read another file of the host. */

const QCOW2_HEADER_BYTES = 104;
const DATA_FILE_BIT = 1 << 2;
const DATA_FILE_EXTENSION = 0x44415441;
const HOST_FILES = [
  '/etc/shadow',
  '../../../etc/shadow',
  'json:{"driver":"file","filename":"/etc/shadow"}',
  'nbd://127.0.0.1:10809/disk',
  '/dev/sda',
];

function qcow2(): Buffer {
  const image = Buffer.alloc(64 * 1024);
  image.write('QFI\xfb', 'latin1');
  image.writeUInt32BE(3, 4);
  image.writeUInt32BE(16, 20);
  image.writeBigUInt64BE(1n << 30n, 24);
  image.writeUInt32BE(QCOW2_HEADER_BYTES, 100);
  return image;
}

function externalOf(image: Buffer): ExternalFile | null {
  const format = recognizeImage(image);
  assert.ok(format.kind === 'container', format.kind);
  return format.external;
}

test('a qcow2 whose data file is a file of the host is known to need that file', () => {
  for (const name of HOST_FILES) {
    const image = qcow2();
    image.writeUInt32BE(DATA_FILE_BIT, 76);
    image.writeUInt32BE(DATA_FILE_EXTENSION, QCOW2_HEADER_BYTES);
    image.writeUInt32BE(name.length, QCOW2_HEADER_BYTES + 4);
    image.write(name, QCOW2_HEADER_BYTES + 8);
    assert.deepEqual(externalOf(image), { role: 'data file', name });
  }
});

test('a qcow2 with an unnamed data file is known to need a data file', () => {
  const image = qcow2();
  image.writeUInt32BE(DATA_FILE_BIT, 76);
  assert.equal(externalOf(image)?.role, 'data file');
});

test('a qcow2 whose backing file is a file of the host is known to need that file', () => {
  for (const name of HOST_FILES) {
    const image = qcow2();
    image.writeBigUInt64BE(0x200n, 8);
    image.writeUInt32BE(name.length, 16);
    image.write(name, 0x200);
    assert.deepEqual(externalOf(image), { role: 'backing file', name });
  }
});

test('a VMDK descriptor whose extent is a file of the host is known to need that file', () => {
  for (const name of HOST_FILES.map((file) => file.replaceAll('"', "'")))
    for (const extent of [`RW 2048 FLAT "${name}" 0`, `RDONLY 2048 SPARSE "${name}"`]) {
      const lines = ['# Disk DescriptorFile', 'version=1', 'CID=fffffffe', extent, ''];
      const image = Buffer.alloc(4096);
      image.write(lines.join('\n'));
      assert.deepEqual(externalOf(image), { role: 'extent file', name });
    }
});
