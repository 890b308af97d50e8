import assert from 'node:assert/strict';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { instanceRecord } from '../support/records.ts';

const MIB = 1024 * 1024;
const SECTOR_BYTES = 512;

/** Returns the header of a 4 TiB qcow2 whose backing file is a file of the host. */
function hostileHeader(): Buffer {
  const header = Buffer.alloc(SECTOR_BYTES);
  const name = '/etc/shadow';
  header.write('QFI\xfb', 'latin1');
  header.writeUInt32BE(3, 4);
  header.writeBigUInt64BE(256n, 8);
  header.writeUInt32BE(name.length, 16);
  header.writeUInt32BE(16, 20);
  header.writeBigUInt64BE(1n << 42n, 24);
  header.write(name, 256);
  return header;
}

test('a disk that its guest made look like a qcow2 grows as the raw disk that it is', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'gnt-header-'));
  try {
    const disks = createInstanceDisks(dir);
    const instance = instanceRecord({ disks: [{ sizeBytes: MIB }] });
    await disks.createEmpty(instance);
    const path = disks.pathOf(instance, 0);
    await using disk = await open(path, 'r+');
    const header = hostileHeader();
    await disk.write(header, 0, header.length, 0);
    await disks.grow(instance, 0, 2 * MIB);
    assert.equal((await stat(path)).size, 2 * MIB);
    const { buffer } = await disk.read(Buffer.alloc(2 * MIB), 0, 2 * MIB, 0);
    assert.ok(buffer.subarray(0, SECTOR_BYTES).equals(header));
    assert.ok(buffer.subarray(SECTOR_BYTES).every((byte) => byte === 0));
  } finally {
    await rm(dir, { recursive: true });
  }
});
