import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isAppError } from '#shared/errors/app-error.ts';
import type { CommandResult } from '../../../../appliance/agent/process/command.ts';
import { findTableFault } from '../../../../appliance/agent/image/disk-signature.ts';
import { examineImage, type ExaminedImage } from '../../../../appliance/agent/image/examine.ts';
import { recognizeImage } from '../../../../appliance/agent/image/format.ts';
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

/** @param tamper changes the output of the tools */
async function examine(
  sourcePath: string,
  format: ExaminedFormat,
  tamper: (told: readonly CommandResult[]) => readonly CommandResult[] = (told) => told,
): Promise<ExaminedImage> {
  await using jail = await ImageJail.open(sourcePath, null);
  const tampered = {
    runTogether: async (programs: readonly (readonly string[])[]) =>
      tamper(await jail.runTogether(programs)),
  };
  return await examineImage({
    sourcePath,
    jail: tampered as unknown as ImageJail,
    fileSizeBytes: statSync(sourcePath).size,
    targetSizeBytes: 16 * MIB,
    format,
    reporter: { log: () => undefined, progress: () => undefined },
  });
}
type ExaminedFormat = (typeof FORMATS)[number] | null;

for (const format of FORMATS) {
  test(`a ${format} image is examined with its format and size`, async () => {
    const image = { kind: 'plain', format, sizeBytes: 8 * MIB };
    assert.deepEqual(await examine(makeImage(format), format), image);
  });
}

test('an image that hides a server as its backing file is refused', async () => {
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

/** A qcow2 with as many internal snapshots as a hostile image, each with the longest name. */
function addSnapshots(path: string, count: number): void {
  const image = readFileSync(path);
  const head = Buffer.alloc(40 + 16);
  head.writeUInt16BE(255, 12);
  head.writeUInt16BE(255, 14);
  head.writeUInt32BE(16, 36);
  const entry = Buffer.concat([head, Buffer.alloc(510, 's')]);
  const padded = Buffer.concat([entry, Buffer.alloc((8 - (entry.length % 8)) % 8)]);
  const offset = Math.ceil(image.length / 65_536) * 65_536;
  image.writeUInt32BE(count, 60);
  image.writeBigUInt64BE(BigInt(offset), 64);
  const gap = Buffer.alloc(offset - image.length);
  const table = Array.from({ length: count }, () => padded);
  writeFileSync(path, Buffer.concat([image, gap, ...table]));
}

test('an image of thousands of snapshots is refused with the reason', async () => {
  const path = makeImage('qcow2');
  addSnapshots(path, 4000);
  await assert.rejects(examine(path, null), { code: 'IMAGE_INVALID', message: /snapshots/ });
});

test('an image whose check is killed is refused', async () => {
  const path = makeImage('qcow2');
  const killed = examine(path, null, ([info, check, ...more]) => {
    assert.ok(info && check);
    return [info, { ...check, status: 137 }, ...more];
  });
  await assert.rejects(killed, { code: 'IMAGE_INVALID' });
});

test('a file that ends in its partition table is truncated, at each byte', () => {
  for (let length = 512; length < 4300; length += 1) {
    const head = Buffer.alloc(length);
    head.write('EFI PART', 512, 'latin1');
    head.fill(0xff, 584);
    const fault = findTableFault(head, length);
    if (length >= 520) assert.match(fault ?? '', /^it is truncated\b/, String(length));
  }
});

test('markup is not a disk image, unless it ends in a boot signature', () => {
  const head = Buffer.alloc(4096);
  head.write('<html>');
  assert.equal(recognizeImage(head).kind, 'unsupported');
  head.writeUInt16BE(0x55aa, 510);
  assert.equal(recognizeImage(head).kind, 'raw');
});

test('a truncated image or an image with wrong tables is refused with a hint', async () => {
  for (const format of FORMATS) {
    const path = makeImage(format);
    const image = readFileSync(path);
    for (const bad of [
      image.subarray(0, 1024),
      Buffer.concat([image.subarray(0, 512), Buffer.alloc(image.length - 512, 0xff)]),
    ]) {
      writeFileSync(path, bad);
      await assert.rejects(
        examine(path, null),
        (error) => isAppError(error, 'IMAGE_INVALID') && error.hint !== undefined,
        format,
      );
    }
  }
});

test('a damaged image is refused with the reason of the tool, not with a warning', async () => {
  const path = makeImage('qcow2');
  const image = readFileSync(path);
  // The first entry of the L1 table (qcow2 header, offset 40) has its reserved bits set.
  image.fill(0xff, Number(image.readBigUInt64BE(40)), Number(image.readBigUInt64BE(40)) + 8);
  writeFileSync(path, image);
  await assert.rejects(examine(path, null), {
    code: 'IMAGE_INVALID',
    message: /^(?!.*deprecated).*(?:L1|L2|l2_offset|ERROR|Could not|error)/,
  });
});
