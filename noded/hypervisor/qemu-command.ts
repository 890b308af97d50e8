import { accessSync, constants } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import type { Accelerator } from './machine.ts';
import type { QemuUser } from '../host/qemu-user.ts';

const QEMU_BINARIES = ['/usr/bin/qemu-system-x86_64', '/usr/local/bin/qemu-system-x86_64'];

/**
 * Notes who this process is (its number and its start survive the execs), forbids core dumps, which
 * would hold a guest's memory, and becomes the program.
 */
const LAUNCH_SCRIPT =
  'umask 077; ulimit -c 0; read -r stat <"/proc/$$/stat"; echo "$stat" >"$1"; shift; unset PWD; exec "$@"';

/** All of QEMU's environment. */
export const QEMU_ENVIRONMENT: Readonly<Record<string, string>> = { PATH: SYSTEM_PATH };

/** @throws AppError HOST_PREREQUISITE */
export function findQemu(): string {
  for (const path of QEMU_BINARIES) {
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // the next one
    }
  }
  throw new AppError('HOST_PREREQUISITE', 'qemu-system-x86_64 is not installed', {
    hint: 'apt install qemu-system-x86',
  });
}

/** The command that drops everything root has and becomes QEMU. */
export function planUnprivileged(
  qemuBinary: string,
  user: QemuUser,
  accelerator: Accelerator,
): readonly string[] {
  const needsGroup = accelerator === 'kvm' && user.kvmGid !== null;
  return [
    'setpriv',
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    needsGroup ? `--groups=${user.kvmGid}` : '--clear-groups',
    '--inh-caps=-all',
    '--bounding-set=-all',
    '--no-new-privs',
    qemuBinary,
  ];
}

/** @param identityFile gets the process' line of /proc/<pid>/stat */
export function planLaunch(identityFile: string, command: readonly string[]): readonly string[] {
  return ['/bin/sh', '-c', LAUNCH_SCRIPT, 'sh', identityFile, ...command];
}
