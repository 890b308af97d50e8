import { AppError } from '#shared/errors/app-error.ts';
import { tryCommand } from '../process/command.ts';

/** `security.selinux` is relabelled by the guest, `trusted.*` belongs to whoever made the file system. */
const KEPT_PREFIXES = ['user.', 'security.capability', 'security.ima', 'system.posix_acl_'];

/**
 * Sets an extended attribute. Node has no call for it; a package has few of them, so a process for each is cheap enough.
 * @param path as this process sees it, `/proc/self/fd/…` included
 */
export async function setXattr(path: string, name: string, value: Buffer): Promise<void> {
  if (!KEPT_PREFIXES.some((prefix) => name.startsWith(prefix))) return;
  const visible = path.replace(/^\/proc\/self\//, `/proc/${process.pid}/`);
  const result = await tryCommand('setfattr', [
    '-h',
    '-n',
    name,
    '-v',
    `0x${value.toString('hex')}`,
    visible,
  ]);
  if (result.status === 0) return;
  throw new AppError('PACKAGE_INVALID', `extended attribute ${name}: ${result.stderr.trim()}`);
}
