import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { createInstanceDisks } from '../../../noded/storage/create-instance-disks.ts';
import { claimSharedFolder, createSharedFolder } from '../../../noded/storage/shared-folder.ts';
import { clusterRecord, instanceRecord } from '../support/records.ts';

const MIB = 1024 * 1024;
let root = '';
let folder = '';

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'gnt-shared-'));
  folder = join(root, 'shared');
  await mkdir(folder, { mode: 0o700 });
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** Mounts a FUSE file system without a responding server, like an unreachable file server. */
const MOUNT_HANGING = String.raw`
use strict;
my ($dir) = @ARGV;
open(my $fuse, '+<', '/dev/fuse') or die "/dev/fuse: $!\n";
my $options = 'fd=' . fileno($fuse) . ',rootmode=40000,user_id=0,group_id=0';
my ($mount, $umount) = $ARGV[1] eq 'x64' ? (165, 166) : (40, 39);
syscall($mount, my $name = 'gone', $dir, my $type = 'fuse', 6, $options) == 0 or die "mount: $!\n";
syswrite(STDOUT, "ready\n");
sysread(STDIN, my $byte, 1);
syscall($umount, $dir, 2);
`;

async function hang(dir: string): Promise<AsyncDisposable> {
  const child = spawn('/usr/bin/perl', ['-e', MOUNT_HANGING, dir, process.arch], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return {
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}

test('a folder that does not answer is refused, and nothing of the node waits for it', async () => {
  const dir = join(root, 'one');
  await mkdir(dir);
  await claimSharedFolder(folder, clusterRecord.uuid);
  const load = () => Promise.resolve({ uuid: clusterRecord.uuid, sharedFileStorageDir: folder });
  const disks = createInstanceDisks(dir, { shared: createSharedFolder(load) });
  const instances = Array.from({ length: 6 }, () => ({
    ...instanceRecord({ diskTemplate: 'sharedfile', disks: [{ sizeBytes: 4 * MIB }] }),
    uuid: randomUUID(),
  }));
  for (const instance of instances) await disks.createEmpty(instance);
  await using hanging = await hang(folder);
  void hanging;
  const refused = { code: 'HOST_PREREQUISITE', message: /does not answer/ };
  const { snapshots } = disks;
  // More calls than the thread pool has threads, each as the first on its folder.
  const asking = instances.flatMap((instance) => [
    assert.rejects(disks.settle(instance), refused),
    assert.rejects(disks.removeSeed(instance), refused),
    assert.rejects(disks.activate(instance), refused),
    assert.rejects(disks.checkUnused(instance), refused),
    assert.rejects(disks.remove(instance), refused),
    assert.rejects(disks.remove({ uuid: instance.uuid }), refused),
    assert.rejects(disks.checkSpace(instance), refused),
    assert.rejects(snapshots.listForgotten(instance), refused),
    assert.rejects(snapshots.isUnfinished(instance.uuid), refused),
    disks.ownBytes(instance),
  ]);
  const began = Date.now();
  await disks.list();
  assert.ok(Date.now() - began < 5_000, 'files of the node were waited for');
  await Promise.all(asking);
  assert.equal((await disks.list()).length, instances.length);
});
