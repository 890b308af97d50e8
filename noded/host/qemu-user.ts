import { AppError, isAppError } from '#shared/errors/app-error.ts';
import { run } from '#shared/process/run.ts';

export const QEMU_USER = 'gnt-qemu';
const KVM_GROUP = 'kvm';

export interface QemuUser {
  readonly uid: number;
  readonly gid: number;
  /** Group of /dev/kvm, where the host has one. */
  readonly kvmGid: number | null;
}

/**
 * The system user that QEMU runs as; made when it is missing.
 * @throws AppError HOST_PREREQUISITE when it cannot be made
 */
export async function ensureQemuUser(): Promise<QemuUser> {
  const found = (await lookUp('passwd', QEMU_USER)) ?? (await createQemuUser());
  const kvm = await lookUp('group', KVM_GROUP);
  return {
    uid: Number(found[2]),
    gid: Number(found[3]),
    kvmGid: kvm === undefined ? null : Number(kvm[2]),
  };
}

async function createQemuUser(): Promise<readonly string[]> {
  const home = ['--no-create-home', '--home-dir', '/nonexistent'];
  const shell = ['--shell', '/usr/sbin/nologin'];
  try {
    await run('useradd', ['--system', '--user-group', ...home, ...shell, QEMU_USER]);
  } catch (error) {
    // Another node daemon on this host may have made it at the same time.
    if (!isAppError(error, 'COMMAND_FAILED')) throw error;
    const found = await lookUp('passwd', QEMU_USER);
    if (found) return found;
    throw new AppError(
      'HOST_PREREQUISITE',
      `cannot create the user ${QEMU_USER}: ${error.message}`,
      {
        hint: `create it: useradd --system --user-group ${QEMU_USER}`,
        cause: error,
      },
    );
  }
  const made = await lookUp('passwd', QEMU_USER);
  if (!made) throw new AppError('HOST_PREREQUISITE', `the user ${QEMU_USER} was not created`);
  return made;
}

/** Fields of a name service entry, or undefined when there is none. */
async function lookUp(
  database: 'passwd' | 'group',
  name: string,
): Promise<readonly string[] | undefined> {
  try {
    return (await run('getent', [database, name])).stdout.trim().split(':');
  } catch (error) {
    // getent(1): 2 means not found.
    if (isAppError(error, 'COMMAND_FAILED') && error.details.exitStatus === 2) return undefined;
    throw error;
  }
}
