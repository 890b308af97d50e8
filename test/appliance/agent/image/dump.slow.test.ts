import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { dumpImage } from '../../../../appliance/agent/image/dump.ts';
import { ImageJail } from '../../../../appliance/agent/image/image-jail.ts';
import type { ImageFormatName } from '#shared/contract/image-formats.ts';
import { isAppError } from '#shared/errors/app-error.ts';
import { isFilledWith } from '../../../lab/is-filled.ts';

const MIB = 1024 * 1024;
const IMAGE_BYTES = 12 * MIB;
let directory = '';
/** Data at the start, in the middle and at the end; holes between. */
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
  // A boot sector, without which it is not a disk.
  execFileSync('sh', [
    '-c',
    `printf '\\125\\252' | dd of=${raw} bs=1 seek=510 conv=notrunc status=none`,
  ]);
  write('65536', 100);
  truncateSync(raw, IMAGE_BYTES);
  write('65536', IMAGE_BYTES / 65536 - 1);
});
after(() => rmSync(directory, { recursive: true }));

function target(name: string, sizeBytes = 16 * MIB): string {
  const path = join(directory, `target-${name}`);
  // Old content of the disk must not remain.
  writeFileSync(path, Buffer.alloc(sizeBytes, 0xaa));
  // The tools run as another user.
  chmodSync(path, 0o666);
  return path;
}

function dump(
  sourcePath: string,
  targetPath: string,
  format: ImageFormatName | null = null,
): Promise<string> {
  return dumpImage({
    sourcePath,
    fileSizeBytes: statSync(sourcePath).size,
    targetPath,
    targetSizeBytes: statSync(targetPath).size,
    isTargetBlank: false,
    format,
    driver: 'file',
    reporter,
  });
}

test('writes an image whole to a blank disk', async () => {
  const disk = join(directory, 'blank');
  writeFileSync(disk, '');
  truncateSync(disk, 16 * MIB);
  chmodSync(disk, 0o666);
  await dumpImage({
    sourcePath: raw,
    fileSizeBytes: IMAGE_BYTES,
    targetPath: disk,
    targetSizeBytes: 16 * MIB,
    isTargetBlank: true,
    format: null,
    driver: 'file',
    reporter,
  });
  assertIsImage(disk);
});

function assertIsImage(targetPath: string): void {
  const found = readFileSync(targetPath);
  const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  assert.equal(digest(found.subarray(0, IMAGE_BYTES)), digest(readFileSync(raw)));
  assert.ok(isFilledWith(0, found.subarray(IMAGE_BYTES)), 'old data behind the image');
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
  test(`writes a ${name} image whole over the former content of the disk`, async () => {
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
      assert.match(error.hint ?? '', /-s 12m.*--disk 0:size=12m.*grow-disk --absolute NAME 0 12m/);
      return true;
    });
    assert.ok(isFilledWith(0xaa, readFileSync(disk)), 'the disk was written');
  });
}

test('refuses a stream that is many times larger than the disk after 128 to 256 MiB', async () => {
  // 1 GiB of zeros, for a disk of 8 MiB.
  const image = make('bomb', '(head -c 512 $in; head -c 1073741824 /dev/zero) | zstd -q -1 >$out');
  const disk = target('bomb', 8 * MIB);
  let readBytes = 0;
  await assert.rejects(dump(image, disk), (error) => {
    assert.ok(isAppError(error, 'IMAGE_TOO_LARGE'), String(error));
    readBytes = Number(/needs more than (\d+) bytes/.exec(error.message)?.[1]);
    return true;
  });
  assert.ok(readBytes > 128 * MIB && readBytes < 256 * MIB, String(readBytes));
});

for (const name of ['gz', 'xz', 'zst', 'bz2']) {
  const command = formats.find(([each]) => each === name)?.[1] ?? '';
  test(`refuses a cut ${name} stream before the first byte`, async () => {
    const image = make(`cut-${name}`, command);
    truncateSync(image, Math.floor(statSync(image).size / 2));
    const disk = target(`cut-${name}`);
    await assert.rejects(dump(image, disk), (error) => isAppError(error, 'IMAGE_INVALID'));
    assert.ok(isFilledWith(0xaa, readFileSync(disk)), 'the disk was written');
  });

  test(`refuses a damaged ${name} stream before the first byte`, async () => {
    const image = make(`damaged-${name}`, command);
    const bytes = readFileSync(image);
    const middle = Math.floor(bytes.length / 2);
    bytes.fill(0x5a, middle, middle + 64);
    writeFileSync(image, bytes);
    const disk = target(`damaged-${name}`);
    await assert.rejects(dump(image, disk), (error) => isAppError(error, 'IMAGE_INVALID'));
    assert.ok(isFilledWith(0xaa, readFileSync(disk)), 'the disk was written');
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
      format: null,
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

test('refuses a file that is not a disk image with its kind, unless the operator sets the format', async () => {
  const cases: [name: string, command: string, said: RegExp][] = [
    [
      'ova',
      'cd $(dirname $in) && echo "<Envelope/>" >a.ovf && tar --format=ustar -cf $out a.ovf',
      /a tar archive/,
    ],
    ['zip', 'printf "PK\\003\\004rest" >$out', /a zip archive/],
    ['qed', 'qemu-img convert -O qed $in $out', /a QED image/],
    ['parallels', 'qemu-img convert -O parallels $in $out', /a Parallels image/],
    ['lz4', 'printf "\\004\\042\\115\\030" >$out; head -c 4096 $in >>$out', /compressed by lz4/],
    ['html', 'echo "<!DOCTYPE html><title>404</title>" >$out', /markup/],
    ['garbage', 'head -c 300000 /dev/zero | tr "\\0" x >$out', /no boot sector/],
    ['zeros', 'truncate -s 4M $out', /begins with zeros/],
    ['garbage-gz', 'head -c 300000 /dev/zero | tr "\\0" x | gzip >$out', /no boot sector/],
    ['empty-qcow2', 'qemu-img create -q -f qcow2 $out 4M', /begins with zeros/],
    ['empty-vmdk', 'qemu-img create -q -f vmdk $out 4M', /begins with zeros/],
    [
      'cut-gpt',
      'truncate -s 8M $out && printf "label: gpt\\nstart=2048,size=10240\\n" | sfdisk -q $out && truncate -s 4M $out',
      /is truncated: its partitions end at byte 6291456, but the image has 4194304/,
    ],
    [
      'cut-mbr',
      'truncate -s 64M $out && printf "start=2048,size=110000\\n" | sfdisk -q $out && truncate -s 16M $out',
      /is truncated: its partitions end at byte 57368576, but the image has 16777216/,
    ],
    [
      'large-sectors',
      'truncate -s 8M $out && printf "\\125\\252" | dd of=$out bs=1 seek=510 conv=notrunc status=none && printf "EFI PART" | dd of=$out bs=4096 seek=1 conv=notrunc status=none',
      /4096-byte sectors/,
    ],
    [
      'encrypted',
      'qemu-img create -q -f qcow2 $out 4M && printf "\\002" | dd of=$out bs=1 seek=35 conv=notrunc status=none',
      /encrypted qcow2 \(LUKS\)/,
    ],
  ];
  for (const [name, command, said] of cases) {
    const image = make(name, command);
    const disk = target(name);
    await assert.rejects(dump(image, disk), (error) => {
      assert.ok(isAppError(error, 'IMAGE_INVALID'), `${name}: ${String(error)}`);
      assert.match(error.message, said, name);
      assert.match(error.hint ?? '', /--image-format/, name);
      return true;
    });
    assert.ok(isFilledWith(0xaa, readFileSync(disk)), `${name}: the disk was written`);
  }
  const zeros = make('said-zeros', 'truncate -s 4M $out');
  assert.match(await dump(zeros, target('said-raw'), 'raw'), /^raw, 4194304 bytes/);
  const gz = make('said-gz', 'head -c 300000 /dev/zero | gzip >$out');
  assert.match(await dump(gz, target('said-raw-gz'), 'raw'), /^raw in gz, 300000 bytes/);
  const qcow2 = make('said-qcow2', 'qemu-img create -q -f qcow2 $out 4M');
  assert.match(await dump(qcow2, target('said-qcow2'), 'qcow2'), /^qcow2, 4194304 bytes/);
  assert.match(await dump(qcow2, target('said-bytes'), 'raw'), /^raw, \d+ bytes/);
  await assert.rejects(dump(qcow2, target('said-wrong'), 'vmdk'), /is qcow2, not vmdk/);
});

test('the command in the hint for an archive extracts an image that is accepted', async () => {
  const archive = make('disk.tar.gz', 'tar -C $(dirname $in) -czf $out $(basename $in)');
  const refusal = await dump(archive, target('archive')).catch((error: unknown) => error);
  assert.ok(isAppError(refusal, 'IMAGE_INVALID'));
  const command = /tar -xf FILE/.exec(refusal.hint ?? '')?.[0].replace('FILE', archive);
  assert.ok(command !== undefined);
  const folder = mkdtempSync(join(directory, 'unpacked-'));
  execFileSync('sh', ['-c', command], { cwd: folder });
  assert.match(await dump(join(folder, basename(raw)), target('unpacked')), /^raw, /);
});

test('opens no file that an image names, and the jail holds only image, disk and tools', async () => {
  const secret = join(directory, 'secret');
  writeFileSync(secret, Buffer.alloc(MIB, 'secret'));
  chmodSync(secret, 0o644);
  // Without a capacity QEMU takes the embedded descriptor as a list of files.
  const image = make('capacity-0.vmdk', 'qemu-img create -q -f vmdk $out 1M');
  const bytes = readFileSync(image);
  const descriptor = `# Disk DescriptorFile\nversion=1\nCID=12345678\nparentCID=ffffffff\ncreateType="monolithicFlat"\nRW 2048 FLAT "${secret}" 0\n`;
  bytes.writeBigUInt64LE(0n, 12);
  bytes.fill(0, 512, 512 + 20 * 512);
  bytes.write(descriptor, 512);
  writeFileSync(image, bytes);
  const disk = target('capacity-0');
  await assert.rejects(dump(image, disk), (error) => isAppError(error, 'IMAGE_INVALID'));
  await using jail = await ImageJail.open(image, disk);
  const read = await jail.run('qemu-img', [
    'convert',
    '-f',
    'vmdk',
    '-O',
    'raw',
    '-n',
    '/image',
    '/disk',
  ]);
  assert.notEqual(read.status, 0);
  assert.ok(!readFileSync(disk).includes('secret'));
  // Independent of the format: the jail holds nothing else, for a user without rights.
  const seen = await jail.run('/bin/sh', ['-c', `cat ${secret}; ls /; id -u; ls /sys/class/net`]);
  assert.deepEqual(seen.stdout.split('\n'), [
    ...['bin', 'dev', 'disk', 'image', 'lib', 'lib64', 'sbin', 'tmp', 'usr', '65534', ''],
  ]);
});

test('refuses a compressed qcow2, a VHD, a truncated qcow2 and an empty stream', async () => {
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
    assert.ok(isFilledWith(0xaa, readFileSync(disk)), 'the disk was written');
  });
}

test('a disk that cannot be opened is not reported as a bad image', async () => {
  const disk = target('read-only');
  chmodSync(disk, 0o444);
  await assert.rejects(dump(make('fine.qcow2', 'qemu-img convert -O qcow2 $in $out'), disk), {
    code: 'IMAGE_DUMP',
    message: /^cannot write to the disk: .*Permission denied/,
  });
});
