import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '#shared/process/run.ts';

const POSTRM = join(import.meta.dirname, '../../../scripts/debian/gnt.postrm');
const UUID = '5b1c7a52-6a0f-4b39-9d27-0f6b7b1b0c11';
const OTHER = '6c2d8b63-7b10-4c4a-8e38-1a7c8c2c1d22';

/** Purges in its own mounts, which hide the real folders. Returns the output. */
async function purge(before: string, after: string): Promise<string> {
  const script = `set -e
for folder in /var/lib /var/log /run /srv /etc; do mount -t tmpfs none $folder; done
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
mkdir -p /var/lib/gnt/disks /var/log/gnt /run/gnt
${before}
sh ${POSTRM} purge
${after}`;
  const { stdout, stderr } = await run('unshare', ['--mount', 'sh', '-c', script]);
  return `${stdout}\n${stderr}`;
}

test('a purge names the instances whose disks it removes', async () => {
  const told = await purge(
    `for uuid in ${UUID} ${OTHER}; do
  mkdir /var/lib/gnt/disks/$uuid && head -c 100000 /dev/zero >/var/lib/gnt/disks/$uuid/disk0
done
echo '${UUID} web1.example.com' >/var/lib/gnt/removed-instances`,
    'ls /var/lib /var/log /run',
  );
  assert.match(
    told,
    new RegExp(`instance web1.example.com: /var/lib/gnt/disks/${UUID}/ \\(\\d+K\\)`),
  );
  assert.match(told, new RegExp(`instance ${OTHER}: `), 'a record that could not be read');
  assert.doesNotMatch(told, /^gnt$/m);
});

test('a purge keeps file systems mounted below its folders, and removes other files', async () => {
  const told = await purge(
    `mkdir /var/lib/gnt/images && mount -t tmpfs none /var/lib/gnt/images
echo kept >/var/lib/gnt/images/kept
mount -t tmpfs none /var/log/gnt && echo log >/var/log/gnt/noded.log
echo record >/var/lib/gnt/store.sqlite`,
    'find /var/lib/gnt /var/log/gnt /run -mindepth 1',
  );
  assert.match(told, /^\/var\/lib\/gnt\/images\/kept$/m);
  assert.doesNotMatch(told, /store\.sqlite/);
  assert.match(told, /^gnt: \/var\/lib\/gnt stays: a file system is mounted there$/m);
});

test('a purge does not report mounted disks as removed', async () => {
  const told = await purge(
    `mount -t tmpfs none /var/lib/gnt/disks && mkdir /var/lib/gnt/disks/${UUID}`,
    'ls /var/lib/gnt/disks',
  );
  assert.match(told, new RegExp(`^${UUID}$`, 'm'));
  assert.doesNotMatch(told, /removing the disks/);
});
