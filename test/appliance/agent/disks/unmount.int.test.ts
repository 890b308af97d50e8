import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { run, type RunResult } from '#shared/process/run.ts';
import { MIB } from '#shared/units/bytes.ts';

/**
 * A file system of the instance on a loop device, as disk `vda`. The stage runs in its own mount
 * namespace.
 */
const unmounting = join(import.meta.dirname, 'support/unmount-disk.ts');
let dir: string;
let device: string;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-unmount-'));
  const image = join(dir, 'image');
  {
    await using file = await open(image, 'w');
    await file.truncate(8 * MIB);
  }
  await run('mke2fs', ['-q', '-t', 'ext4', image]);
  device = (await run('losetup', ['--find', '--show', image])).stdout.trim();
  for (const one of ['sys/vda', 'dev', 'mnt']) await mkdir(join(dir, one), { recursive: true });
  await writeFile(join(dir, 'sys/vda/serial'), 'disk-0\n');
  await writeFile(join(dir, 'sys/vda/size'), `${(8 * MIB) / 512}\n`);
  await symlink(device, join(dir, 'dev/vda'));
});
after(async () => {
  await run('losetup', ['--detach', device]);
  await rm(dir, { recursive: true, force: true });
});

const unmount = (): Promise<RunResult> =>
  run('unshare', ['--mount', process.execPath, unmounting, dir]);

test('a disk that is mounted in another namespace is an error with its name', async () => {
  assert.match((await unmount()).stdout, /^nothing was mounted$/m);
  // A mount in another namespace, as of a script that still runs.
  const held = 'mount "$0" "$1" && echo mounted && exec sleep 600';
  const holder = spawn('unshare', ['--mount', 'sh', '-c', held, device, join(dir, 'mnt')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(holder.stdout, 'data');
    const { stdout } = await unmount();
    assert.match(
      stdout,
      /^COMMAND_FAILED: .*\/dev\/vda is still in use, so its file systems are not/m,
    );
  } finally {
    holder.kill('SIGKILL');
    await once(holder, 'exit');
  }
  assert.match((await unmount()).stdout, /^nothing was mounted$/m);
});

test('a mount that is left over is unmounted and logged', async () => {
  const mounted = [`mount ${device} ${join(dir, 'mnt')}`, `exec "$0" "$1" "$2"`].join(' && ');
  const words = ['--mount', 'sh', '-c', mounted, process.execPath, unmounting, dir];
  const { stdout } = await run('unshare', words);
  assert.match(stdout, /was still mounted on .*\/mnt: unmounted$/m);
});
