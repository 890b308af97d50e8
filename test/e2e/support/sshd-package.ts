import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '#shared/process/run.ts';
import { debianTree } from '../../lab/cached-tree.ts';

/** Debian's own sshd, and the dependencies that a small guest image lacks. */
const FILES = [
  'etc/default/ssh',
  'etc/pam.d/sshd',
  'etc/ssh',
  'usr/bin/ssh-keygen',
  'usr/lib/openssh/sftp-server',
  'usr/lib/systemd/system/ssh.service',
  'usr/lib/x86_64-linux-gnu/libwrap.so.0',
  'usr/lib/x86_64-linux-gnu/libwrap.so.0.7.6',
  'usr/sbin/sshd',
];

/**
 * Makes a personalization package that adds an sshd to a Debian 12, as its installation would:
 * started at boot, with its user, without host keys.
 * @returns its path, in `directory`
 */
export async function packSshd(directory: string): Promise<string> {
  const tree = await debianTree('sshd', ['openssh-server']);
  const own = join(directory, 'sshd-own');
  const units = join(own, 'etc/systemd/system');
  await mkdir(join(units, 'multi-user.target.wants'), { recursive: true });
  const unit = '/lib/systemd/system/ssh.service';
  await symlink(unit, join(units, 'multi-user.target.wants/ssh.service'));
  await symlink(unit, join(units, 'sshd.service'));
  await mkdir(join(own, 'usr/lib/sysusers.d'), { recursive: true });
  await writeFile(join(own, 'usr/lib/sysusers.d/sshd.conf'), 'u sshd - - /run/sshd\n');
  const archive = join(directory, 'sshd.tar.gz');
  await run('tar', [
    ...['--owner=0', '--group=0', '--exclude=etc/ssh/ssh_host_*', '-czf', archive],
    ...['-C', tree, ...FILES, '-C', own, 'etc/systemd', 'usr/lib/sysusers.d'],
  ]);
  return archive;
}
