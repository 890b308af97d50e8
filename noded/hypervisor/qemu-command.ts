import { accessSync, constants } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { SYSTEM_PATH } from '#shared/process/system-path.ts';
import { NO_CORE_BYTES } from '#shared/sys/forbid-cores.ts';
import type { MachineUsers } from '../host/machine-users.ts';

const QEMU_BINARIES = ['/usr/bin/qemu-system-x86_64', '/usr/local/bin/qemu-system-x86_64'];

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

export interface SandboxedLaunch {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly users: MachineUsers;
  /** Its only supplementary group, for /dev/kvm. */
  readonly group: number | null;
  /** Its sockets are the host's own; otherwise it has a network of its own, with nothing in it. */
  readonly hasHostNetwork: boolean;
  /** Gets the process' line of /proc/<pid>/stat. */
  readonly identityFile?: string;
}

/**
 * The command that notes who it is (the process' number and its start survive the execs), forbids
 * core dumps, which would hold a guest's memory, gives up everything that root has and becomes the
 * program. Its user is the range's first plus its own number.
 */
export function planLaunch(launch: SandboxedLaunch): readonly string[] {
  const { users, group, hasHostNetwork, identityFile = '/dev/null' } = launch;
  const limits = `prlimit --core=${NO_CORE_BYTES}:${NO_CORE_BYTES} -- `;
  const isolate = `unshare ${hasHostNetwork ? '' : '--net '}--ipc -- `;
  const groups = group === null ? '--clear-groups' : `--groups=${group}`;
  const script = [
    'umask 077',
    'read -r stat <"/proc/$$/stat"; echo "$stat" >"$1"; shift',
    `id=$((${users.first} + $$)); unset PWD`,
    `exec ${limits}${isolate}setpriv --reuid=$id --regid=$id ${groups} --inh-caps=-all --bounding-set=-all --no-new-privs -- "$@"`,
  ];
  return ['/bin/sh', '-c', script.join('\n'), 'sh', identityFile, ...launch.command];
}
