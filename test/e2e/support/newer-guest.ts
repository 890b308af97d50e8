import { copyFile, open, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { GIB } from '#shared/units/bytes.ts';
import { newerDebianTree } from '../../lab/debian-releases.ts';
import type { NewerRelease } from '../../lab/debian-releases.ts';
import { GuestTree } from '../../metad/support/guest-tree.ts';

const MKE2FS_TIMEOUT_MS = 5 * 60_000;
export const NEWER_DISK_BYTES = GIB;

/**
 * QEMU 7.2's emulation has problems with kernels this new. Debian 13's once ended in a double fault
 * in cmpxchg16b, so that instruction is disabled. Each of the two kernels once hung silently, which
 * thirty more boots did not reproduce. Therefore the kernel logs (without `quiet`), and callers
 * boot a silent guest a second time.
 */
const MORE_ARGUMENTS: Readonly<Record<NewerRelease, string>> = {
  trixie: ' clearcpuid=cx16',
  testing: '',
};

export interface NewerGuest {
  /** `-H`: boots the release's own kernel. */
  readonly hypervisorParameters: string;
  /** Replaces a disk with the guest's. */
  writeDisk(path: string): Promise<void>;
}

/**
 * Makes a guest of a newer Debian, as a disk without a boot loader. At the end of each boot a unit
 * sends the output of a script to the host.
 * @param directory for its world-readable kernel
 */
export async function newerGuest(
  release: NewerRelease,
  directory: string,
  { report, files = {} }: { report: string; files?: Readonly<Record<string, string>> },
): Promise<NewerGuest> {
  const tree = await newerDebianTree(release);
  const kernel = join(directory, `vmlinuz-${release}`);
  const initrd = join(directory, `initrd-${release}`);
  for (const name of await readdir(join(tree, 'boot'))) {
    if (name.startsWith('vmlinuz-')) await copyFile(join(tree, 'boot', name), kernel);
    if (name.startsWith('initrd.img-')) await copyFile(join(tree, 'boot', name), initrd);
  }
  await run('chmod', ['a+r', kernel, initrd]);
  const kernelArguments = `root=/dev/vda rw console=ttyS0 fsck.mode=skip${MORE_ARGUMENTS[release]}`;
  return {
    hypervisorParameters: `kernel_path=${kernel},initrd_path=${initrd},kernel_args=${kernelArguments}`,
    writeDisk: async (path) => {
      await using guest = await GuestTree.create(tree, '');
      for (const [name, text] of Object.entries({ ...files, ...reportFiles(report) }))
        await guest.write(name, text);
      await symlink(
        '../report.service',
        join(guest.root, 'etc/systemd/system/multi-user.target.wants/report.service'),
      );
      await using file = await open(path, 'w', 0o600);
      await file.truncate(NEWER_DISK_BYTES);
      await run('mke2fs', ['-q', '-F', '-t', 'ext4', '-d', guest.root, path], {
        timeoutMs: MKE2FS_TIMEOUT_MS,
      });
    },
  };
}

function reportFiles(report: string): Readonly<Record<string, string>> {
  return {
    'etc/systemd/system/report.service': `[Unit]
[Service]
ExecStart=/usr/local/sbin/report
`,
    // With a session token, because the metadata service may require one.
    'usr/local/sbin/report': `#!/bin/sh
state=$(systemctl is-system-running --wait)
service=http://169.254.169.254
token=$(curl -sf --max-time 20 --retry 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $service/latest/api/token)
{
  echo "state: $state"
  systemctl --failed --plain --no-legend | sed 's/^/failed: /'
  journalctl -b -q -g 'ordering cycle' | sed 's/^/cycle: /'
${report}
  echo end-of-report
} 2>&1 | curl -sf --max-time 20 --retry 5 -H "X-aws-ec2-metadata-token: $token" --data-binary @- \
  $service/ganeti/latest/write
`,
  };
}
