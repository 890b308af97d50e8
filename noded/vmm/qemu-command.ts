import { accessSync, constants } from 'node:fs';
import { AppError } from '#shared/errors/app-error.ts';
import { planSandbox, type SandboxLaunch } from '#shared/sandbox/plan-sandbox.ts';
import { run } from '#shared/process/run.ts';
import type { MachineUsers } from '../host/machine-users.ts';

const QEMU_BINARIES = ['/usr/bin/qemu-system-x86_64', '/usr/local/bin/qemu-system-x86_64'];

/** @throws AppError HOST_PREREQUISITE */
export function findQemu(): string {
  for (const path of QEMU_BINARIES) {
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Try the next path.
    }
  }
  throw new AppError('HOST_PREREQUISITE', 'qemu-system-x86_64 is not installed', {
    hint: 'Install it: apt-get install qemu-system-x86',
  });
}

/** Returns the major and minor version of the installed QEMU. @throws AppError HOST_PREREQUISITE */
export async function readQemuVersion(): Promise<string> {
  const { stdout } = await run(findQemu(), ['--version']);
  return /version (\d+\.\d+)/.exec(stdout)?.[1] ?? 'unknown';
}

export interface SandboxedLaunch extends Omit<SandboxLaunch, 'firstUid'> {
  readonly users: MachineUsers;
}

/** Plans a command that drops root's privileges and executes the program. */
export function planLaunch({ users, ...launch }: SandboxedLaunch): readonly string[] {
  return planSandbox({ ...launch, firstUid: users.first });
}
