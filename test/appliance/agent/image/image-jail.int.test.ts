import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { spawnSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { MIB } from '#shared/units/bytes.ts';
import { decompress } from '../../../../appliance/agent/image/decompress.ts';
import { ImageJail } from '../../../../appliance/agent/image/image-jail.ts';
import { PERL, planConfineCommand } from '../../../../appliance/agent/process/held-namespace.ts';

/** The process' state in the kernel, by x86-64 system calls: prctl 157, capget 125, statfs 137. */
const LOOK = String.raw`
use strict;
sub bits { my $set = pack('L6', (1) x 6); syscall(125, my $header = pack('LL', 0x20080522, 0), $set); return join ' ', unpack('L6', $set) }
print "users $< $> groups $( $)\n";
print "capabilities ", bits(), "\n";
print "to be had ", scalar(grep { syscall(157, 23, $_, 0, 0, 0) == 1 } 0 .. 63), "\n";
print "no new privileges ", syscall(157, 39, 0, 0, 0, 0), "\n";
print "filter of calls ", syscall(157, 21, 0, 0, 0, 0), "\n";
print "environment ", join(' ', map { "$_=$ENV{$_}" } sort keys %ENV), "\n";
print "process ", ($$ < 10 ? 'in a namespace of its own' : $$), "\n";
syscall(137, my $path = '/usr', my $statfs = "\0" x 120);
print "programs are ", ((unpack('Q11', $statfs))[10] & 1 ? 'read-only' : 'writable'), "\n";
print "writes in $_\n" for grep { open(my $f, '>', "$_/x") } qw(/ /usr /usr/bin /dev);
# Unix, IPv4, netlink, the kernel's ciphers, vsock.
print "has sockets of family $_\n" for grep { syscall(41, $_, 2, 0) >= 0 || syscall(41, $_, 1, 0) >= 0 || syscall(41, $_, 5, 0) >= 0 } (1, 2, 16, 38, 40);
print "has rings\n" if syscall(425, 1, my $ring = "\0" x 120) >= 0;
print "has user namespaces\n" if syscall(272, 0x10000000) >= 0;
print "wrote the image\n" if open(my $image, '+<', '/image');
`;

test('a tool in the image jail has no capabilities, sockets or write access to the image, and a minimal environment', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnt-jail-'));
  try {
    const [image, disk] = [join(folder, 'image'), join(folder, 'disk')];
    writeFileSync(image, 'image', { mode: 0o644 });
    writeFileSync(disk, 'disk', { mode: 0o666 });
    // A supplementary group that the jail must drop.
    process.setgroups?.([1]);
    await using jail = await ImageJail.open(image, disk);
    const seen = await jail.run('/usr/bin/perl', ['-e', LOOK]);
    assert.deepEqual(seen.stdout.trimEnd().split('\n'), [
      'users 65534 65534 groups 65534 65534',
      'capabilities 0 0 0 0 0 0',
      'to be had 0',
      'no new privileges 1',
      'filter of calls 2',
      'environment LC_ALL=C PATH=/usr/bin',
      'process in a namespace of its own',
      'programs are read-only',
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a tool that cannot be started is not an error of the image', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnt-jail-'));
  try {
    const image = join(folder, 'image');
    writeFileSync(image, 'image', { mode: 0o644 });
    const jail = await ImageJail.open(image, null);
    await jail[Symbol.asyncDispose]();
    const failure = {
      code: 'COMMAND_FAILED',
      message: /cannot start the tools that read images: confine: /,
    };
    await assert.rejects(jail.run('/bin/ls', ['/']), failure);
    await assert.rejects(jail.runTogether([['/bin/ls', '/']]), failure);
    writeFileSync(image, gzipSync('image'));
    const stream = decompress(jail, { path: image, sizeBytes: 25 }, 'gz');
    await assert.rejects(stream.next(), failure);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** Runs a test with a jail and an image of these bytes. */
async function withJail(image: Buffer, body: (jail: ImageJail, path: string) => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), 'gnt-jail-'));
  try {
    const path = join(folder, 'image');
    writeFileSync(path, image, { mode: 0o644 });
    await using jail = await ImageJail.open(path, null);
    await body(jail, path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('a tool in the image jail has oom_score_adj 1000', async () => {
  await withJail(Buffer.alloc(1), async (jail) => {
    const child = jail.start(['/bin/sh', '-c', 'echo ready; exec sleep 60']);
    try {
      await once(child.stdout, 'data');
      const orders = [...descendantsOf(child.pid ?? 0)].map((pid) =>
        readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim(),
      );
      assert.deepEqual(orders, ['1000', '1000', '1000'], 'who waits, its first process, the tool');
    } finally {
      child.kill('SIGKILL');
    }
  });
});

function* descendantsOf(pid: number): Generator<number> {
  yield pid;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  for (const child of children.split(' ').filter((text) => text !== ''))
    yield* descendantsOf(Number(child));
}

test('a killed tool is an error with its signal, alone, beside others and as a decompressor', async () => {
  const die = (signal: string) => ['/bin/sh', '-c', `kill -${signal} $$`];
  const crashed = { code: 'IMAGE_INVALID', message: /killed by SIGSEGV: it crashed/ };
  const tooLarge = { code: 'IMAGE_INVALID', message: /killed by SIGKILL: it needed more memory/ };
  await withJail(gzipSync(randomBytes(4 * MIB)), async (jail, path) => {
    await assert.rejects(jail.run('/bin/sh', die('SEGV').slice(1)), crashed);
    await assert.rejects(jail.run('/bin/sh', die('KILL').slice(1)), tooLarge);
    await assert.rejects(jail.runTogether([['/bin/true'], die('KILL')]), tooLarge);
    const stream = decompress(jail, { path, sizeBytes: statSync(path).size }, 'gz');
    await stream.next();
    const [gzip = assert.fail()] = spawnSync('pgrep', ['-x', 'gzip'], { encoding: 'utf8' })
      .stdout.split('\n')
      .filter((pid) => pid !== '' && isJailed(Number(pid)));
    process.kill(Number(gzip), 'SIGKILL');
    await assert.rejects(Array.fromAsync(stream), tooLarge);
  });
});

/**
 * Whether a process is a grandchild of this test, below the waiting process and the first process
 * of the jail.
 */
function isJailed(pid: number): boolean {
  return [...descendantsOf(process.pid)].includes(pid);
}

test('a stream whose window needs too much memory is refused with the reason', async () => {
  const dear = [
    ['xz', ['--format=xz', '--lzma2=preset=0,dict=256MiB']],
    ['zst', ['--long=28', '-1']],
  ] as const;
  for (const [kind, options] of dear) {
    const program = kind === 'xz' ? 'xz' : 'zstd';
    const { stdout } = spawnSync(program, [...options, '-c'], {
      // zstd's window is at most the size of its input.
      input: Buffer.alloc(129 * MIB),
      maxBuffer: 64 * MIB,
    });
    await withJail(stdout, async (jail, path) => {
      const stream = decompress(jail, { path, sizeBytes: stdout.length }, kind);
      await assert.rejects(Array.fromAsync(stream), {
        ...{ code: 'IMAGE_INVALID', message: /needs more than 128MiB of memory/ },
        hint: /with a smaller window/,
      });
    });
  }
});

test('a jail without a disk holds only the image and the tools', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnt-jail-'));
  try {
    const image = join(folder, 'image');
    writeFileSync(image, 'image', { mode: 0o644 });
    await using jail = await ImageJail.open(image, null);
    const seen = await jail.run('/bin/ls', ['/']);
    assert.deepEqual(seen.stdout.trimEnd().split('\n'), [
      ...['bin', 'dev', 'image', 'lib', 'lib64', 'sbin', 'tmp', 'usr'],
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('programs that run together have their own arguments, outputs and exit status', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gnt-jail-'));
  try {
    const image = join(folder, 'image');
    writeFileSync(image, 'image', { mode: 0o644 });
    await using jail = await ImageJail.open(image, null);
    const seen = await jail.runTogether([
      ['/bin/sh', '-c', 'printf %s "$1"; exit 3', 'sh', `it's $HOME; "x"\n`],
      ['/bin/cat', '/image'],
      ['/nowhere'],
    ]);
    const [words, file, missing] = seen;
    assert.deepEqual([words.status, words.stdout], [3, `it's $HOME; "x"\n`]);
    assert.deepEqual([file.status, file.stdout, file.stderr], [0, 'image', '']);
    assert.deepEqual([missing.status, missing.stdout], [127, '']);
    assert.match(missing.stderr, /\/nowhere: not found/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** Starts a tool as the agent does, without a jail, from a process with the same rights. */
function startedBy(who: readonly string[], mode: string) {
  const program = planConfineCommand(mode, '0', '', '/', '', '', '', PERL, '-e', LOOK);
  const [command = '', ...args] = [...who, PERL, ...program];
  return spawnSync(command, args, { encoding: 'utf8' });
}

test('inheritable and ambient capabilities of the agent do not reach a program', () => {
  const rights = ['/usr/bin/setpriv', '--inh-caps=+chown,+sys_admin'];
  const ambient = [...rights, '--ambient-caps=+chown,+sys_admin'];
  for (const who of [rights, ambient]) {
    const { stdout, stderr } = startedBy(who, 'nobody');
    assert.match(stdout, /^capabilities 0 0 0 0 0 0$/m, stderr);
  }
});

test('a program whose capabilities cannot be bounded is not started', () => {
  const who = ['/usr/bin/setpriv', '--bounding-set=-setpcap'];
  const { stdout, stderr, status } = startedBy(who, 'nobody');
  assert.equal(stdout, '');
  assert.match(stderr, /confine: capability 0: Operation not permitted/);
  assert.notEqual(status, 0);
});
