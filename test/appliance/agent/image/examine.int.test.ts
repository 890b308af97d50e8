import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { examineImage, type ExaminedImage } from '../../../../appliance/agent/image/examine.ts';
import { ImageJail } from '../../../../appliance/agent/image/image-jail.ts';

const MIB = 1024 * 1024;
const FORMATS = ['qcow2', 'vmdk', 'vdi', 'vhdx'] as const;
const DESCRIPTOR_BYTES = 20 * 512;
let directory = '';

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-examine-'));
});
after(() => rmSync(directory, { recursive: true }));

/** A disk with a boot sector. */
function makeImage(format: (typeof FORMATS)[number]): string {
  const [raw, path] = [join(directory, `${format}.raw`), join(directory, format)];
  const disk = Buffer.alloc(8 * MIB);
  disk.writeUInt16LE(0xaa55, 510);
  disk.write('boot', 0);
  writeFileSync(raw, disk);
  execFileSync('qemu-img', ['convert', '-O', format, raw, path]);
  // The tools run as another user.
  chmodSync(path, 0o644);
  return path;
}

async function examine(sourcePath: string, format: ExaminedFormat): Promise<ExaminedImage> {
  await using jail = await ImageJail.open(sourcePath, null);
  return await examineImage({
    sourcePath,
    jail,
    fileSizeBytes: statSync(sourcePath).size,
    targetSizeBytes: 16 * MIB,
    format,
    reporter: { log: () => undefined, progress: () => undefined },
  });
}
type ExaminedFormat = (typeof FORMATS)[number] | null;

for (const format of FORMATS) {
  test(`a disk in ${format} is what it holds`, async () => {
    const image = { kind: 'plain', format, sizeBytes: 8 * MIB };
    assert.deepEqual(await examine(makeImage(format), format), image);
  });
}

test('an image that hides a server as its backing file is refused, and nobody waits for that', async () => {
  const path = makeImage('vmdk');
  const image = readFileSync(path);
  const start = image.indexOf('# Disk DescriptorFile');
  const text = image.toString('latin1', start, start + DESCRIPTOR_BYTES).replace(/\0+$/, '');
  const server = "{'driver':'nbd','server':{'type':'unix','path':'/x'},'open-timeout':4000000}";
  const hint = `parentFileNameHint="json:{'driver':'vmdk','file':${server}}"`;
  image.fill(0, start, start + DESCRIPTOR_BYTES);
  image.write(text.replace('parentCID=ffffffff', `parentCID=ffffffff\n${hint}`), start, 'latin1');
  writeFileSync(path, image);
  await assert.rejects(examine(path, null), { code: 'IMAGE_BACKING_FILE' });
});
