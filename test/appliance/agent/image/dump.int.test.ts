import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { dumpImage } from '../../../../appliance/agent/image/dump.ts';
import { isAppError } from '#shared/errors/app-error.ts';

const MIB = 1024 * 1024;
const IMAGE_BYTES = 12 * MIB;
let directory = '';
/** Data at the start, in the middle and at the very end; holes between. */
let raw = '';
const reporter = { log: () => undefined, progress: () => undefined };

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gnt-dump-'));
  raw = join(directory, 'image.raw');
  const write = (bytes: string, seek: number): unknown =>
    execFileSync('sh', [
      '-c',
      `head -c ${bytes} /dev/urandom | dd of=${raw} bs=65536 seek=${seek} conv=notrunc status=none`,
    ]);
  write('200000', 0);
  write('65536', 100);
  truncateSync(raw, IMAGE_BYTES);
  write('65536', IMAGE_BYTES / 65536 - 1);
});
after(() => rmSync(directory, { recursive: true }));

function target(name: string, sizeBytes = 16 * MIB): string {
  const path = join(directory, `target-${name}`);
  // What was on the disk before must not shine through.
  writeFileSync(path, Buffer.alloc(sizeBytes, 0xaa));
  return path;
}

function dump(sourcePath: string, targetPath: string): Promise<string> {
  return dumpImage({
    sourcePath,
    fileSizeBytes: statSync(sourcePath).size,
    targetPath,
    targetSizeBytes: statSync(targetPath).size,
    isTargetBlank: false,
    driver: 'file',
    reporter,
  });
}

test('writes sparse to a disk that is blank already', async () => {
  const disk = join(directory, 'blank');
  writeFileSync(disk, '');
  truncateSync(disk, 16 * MIB);
  await dumpImage({
    sourcePath: raw,
    fileSizeBytes: IMAGE_BYTES,
    targetPath: disk,
    targetSizeBytes: 16 * MIB,
    isTargetBlank: true,
    driver: 'file',
    reporter,
  });
  assertIsImage(disk);
});

function assertIsImage(targetPath: string): void {
  const found = readFileSync(targetPath);
  const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  assert.equal(digest(found.subarray(0, IMAGE_BYTES)), digest(readFileSync(raw)));
  assert.ok(
    found.subarray(IMAGE_BYTES).every((byte) => byte === 0),
    'old data behind the image',
  );
  assert.ok(statSync(targetPath).blocks * 512 < 2 * MIB, 'zeros were written');
}

function make(name: string, command: string): string {
  const path = join(directory, name);
  execFileSync('sh', ['-c', command.replaceAll('$in', raw).replaceAll('$out', path)], {
    stdio: 'pipe',
  });
  return path;
}

const formats: readonly (readonly [string, string])[] = [
  ['raw', 'cp --sparse=always $in $out'],
  ['qcow2 v2', 'qemu-img convert -O qcow2 -o compat=0.10 $in $out'],
  ['qcow2 v3', 'qemu-img convert -O qcow2 $in $out'],
  ['qcow2 with compressed clusters', 'qemu-img convert -c -O qcow2 $in $out'],
  ['qcow2 with zstd clusters', 'qemu-img convert -c -O qcow2 -o compression_type=zstd $in $out'],
  ['vmdk', 'qemu-img convert -O vmdk $in $out'],
  ['stream-optimized vmdk', 'qemu-img convert -O vmdk -o subformat=streamOptimized $in $out'],
  ['vdi', 'qemu-img convert -O vdi $in $out'],
  ['vhdx', 'qemu-img convert -O vhdx $in $out'],
  ['gz', 'gzip -1 <$in >$out'],
  [
    'gz of several members',
    '(head -c 5000000 $in | gzip -1; tail -c +5000001 $in | gzip -1) >$out',
  ],
  ['xz', 'xz -0 <$in >$out'],
  ['zst', 'zstd -q -1 <$in >$out'],
  [
    'zst of several frames',
    '(head -c 5000000 $in | zstd -q -1; tail -c +5000001 $in | zstd -q -1) >$out',
  ],
  ['bz2', 'bzip2 -1 <$in >$out'],
];

for (const [name, command] of formats) {
  test(`writes a ${name} image sparse and whole over what the disk held`, async () => {
    const image = make(`ok-${name.replaceAll(' ', '-')}`, command);
    const disk = target(name.replaceAll(' ', '-'));
    await dump(image, disk);
    assertIsImage(disk);
  });

  test(`refuses a ${name} image that is larger than the disk, with both sizes, before the first byte`, async () => {
    const image = make(`large-${name.replaceAll(' ', '-')}`, command);
    const disk = target(`small-${name.replaceAll(' ', '-')}`, 8 * MIB);
    await assert.rejects(dump(image, disk), (error) => {
      assert.ok(isAppError(error, 'IMAGE_TOO_LARGE'), String(error));
      assert.match(error.message, new RegExp(String(IMAGE_BYTES)));
      assert.match(error.message, new RegExp(String(8 * MIB)));
      return true;
    });
    assert.ok(
      readFileSync(disk).every((byte) => byte === 0xaa),
      'the disk was written',
    );
  });
}

for (const name of ['gz', 'xz', 'zst', 'bz2']) {
  const command = formats.find(([each]) => each === name)?.[1] ?? '';
  test(`refuses a cut ${name} stream before the first byte`, async () => {
    const image = make(`cut-${name}`, command);
    truncateSync(image, Math.floor(statSync(image).size / 2));
    const disk = target(`cut-${name}`);
    await assert.rejects(dump(image, disk), (error) => isAppError(error, 'IMAGE_INVALID'));
    assert.ok(
      readFileSync(disk).every((byte) => byte === 0xaa),
      'the disk was written',
    );
  });

  test(`refuses a damaged ${name} stream before the first byte`, async () => {
    const image = make(`damaged-${name}`, command);
    const bytes = readFileSync(image);
    const middle = Math.floor(bytes.length / 2);
    bytes.fill(0x5a, middle, middle + 64);
    writeFileSync(image, bytes);
    const disk = target(`damaged-${name}`);
    await assert.rejects(dump(image, disk), (error) => isAppError(error, 'IMAGE_INVALID'));
    assert.ok(
      readFileSync(disk).every((byte) => byte === 0xaa),
      'the disk was written',
    );
  });

  test(`reads a ${name} file from a disk that pads it with zeros`, async () => {
    const image = make(`padded-${name}`, command);
    const sizeBytes = statSync(image).size;
    truncateSync(image, Math.ceil(sizeBytes / 512) * 512);
    const disk = target(`padded-${name}`);
    await dumpImage({
      sourcePath: image,
      fileSizeBytes: sizeBytes,
      targetPath: disk,
      targetSizeBytes: statSync(disk).size,
      isTargetBlank: false,
      driver: 'file',
      reporter,
    });
    assertIsImage(disk);
  });
}

test('names the other file that an image needs', async () => {
  const cases: [string, string, string][] = [
    ['backed', 'qemu-img create -q -f qcow2 -F raw -b $in $out', raw],
    [
      'external',
      `qemu-img create -q -f qcow2 -o data_file=${directory}/data.bin $out 12M`,
      'data.bin',
    ],
    [
      'flat',
      'qemu-img convert -O vmdk -o subformat=monolithicFlat $in $out.vmdk && mv $out.vmdk $out',
      'flat-flat.vmdk',
    ],
    [
      'vmdk-child',
      'qemu-img convert -O vmdk $in $out.base && qemu-img create -q -f vmdk -F vmdk -b $out.base $out',
      'vmdk-child.base',
    ],
  ];
  for (const [name, command, other] of cases) {
    const image = make(name, command);
    await assert.rejects(dump(image, target(name)), (error) => {
      assert.ok(isAppError(error, 'IMAGE_BACKING_FILE'), `${name}: ${String(error)}`);
      assert.ok(error.message.includes(other), `${name}: ${error.message}`);
      return true;
    });
  }
});

test('refuses what it knows not to be a raw disk', async () => {
  const inner = make('inner.qcow2', 'qemu-img create -q -f qcow2 $out 1M');
  const cases: [string, string][] = [
    ['qcow2-in-gz', `gzip <${inner} >$out`],
    ['vhd', 'qemu-img convert -O vpc $in $out'],
    ['cut-qcow2', 'printf "QFI\\373\\0\\0\\0\\3" >$out'],
    ['empty-gz', 'printf "" | gzip >$out'],
  ];
  for (const [name, command] of cases)
    await assert.rejects(
      dump(make(name, command), target(name)),
      (error) => isAppError(error, 'IMAGE_INVALID'),
      name,
    );
});

for (const [format, option] of [
  ['qcow2', ''],
  ['vmdk', ''],
  ['vdi', ''],
  ['vhdx', ''],
  ['vmdk', '-o subformat=streamOptimized'],
]) {
  test(`refuses a cut ${format} image (${option || 'plain'}) before the first byte`, async () => {
    const image = make(`cut.${format}`, `qemu-img convert ${option} -O ${format} $in $out`);
    truncateSync(image, Math.floor((statSync(image).size * 2) / 3 / 512) * 512);
    const disk = target(`cut-${format}-data`);
    await assert.rejects(dump(image, disk), (error) => isAppError(error, 'IMAGE_INVALID'));
    assert.ok(
      readFileSync(disk).every((byte) => byte === 0xaa),
      'the disk was written',
    );
  });
}
