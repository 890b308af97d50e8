import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile, chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastLineOf } from '#shared/text/lines.ts';
import type { AcceleratorChoice } from './machine.ts';
import { createProbeFirmware, PROBE_EXIT_SUCCESS, PROBE_EXIT_WRONG } from './probe-firmware.ts';
import { QEMU_ENVIRONMENT, findQemu, planLaunch } from './qemu-command.ts';
import { findKvmGroup, type MachineUsers } from '../host/machine-users.ts';

const KVM_DEVICE = '/dev/kvm';
/** The test takes 0.1 s with a working KVM, and never ends with a broken one. */
const DEADLINE_MS = 3_000;
/** A vCPU stuck in the kernel may outlive SIGKILL. The process is abandoned then. */
const KILL_WAIT_MS = 1_000;
const MAX_STDERR_BYTES = 4_096;

interface ProbeEnd {
  readonly exitStatus: number | null;
  readonly signal: string | null;
  readonly stderr: string;
  readonly isLate: boolean;
}

/**
 * Tests whether KVM runs a guest for a QEMU user. `-accel kvm` itself fails only when the device
 * cannot be opened.
 * @param device for tests
 */
export async function probeKvm(
  users: MachineUsers,
  device = KVM_DEVICE,
): Promise<AcceleratorChoice> {
  if (!existsSync(device)) return { accelerator: 'tcg', reason: `${device} does not exist` };
  const directory = await mkdtemp(join(tmpdir(), 'gnt-probe-'));
  try {
    // QEMU reads it as another user.
    await chmod(directory, 0o755);
    const firmware = join(directory, 'firmware');
    await writeFile(firmware, createProbeFirmware(), { mode: 0o644 });
    return judge(await runProbe(planProbe(users, firmware)));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function planProbe(users: MachineUsers, firmware: string): readonly string[] {
  const command = [
    findQemu(),
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
    ...['-machine', 'q35', '-accel', 'kvm', '-cpu', 'host', '-m', '16M'],
    ...['-bios', firmware, '-device', 'isa-debug-exit,iobase=0xf4,iosize=1'],
  ];
  return planLaunch({ command, users, group: findKvmGroup(), hasHostNetwork: false });
}

async function runProbe(command: readonly string[]): Promise<ProbeEnd> {
  const [file = '', ...args] = command;
  const child = spawn(file, args, {
    cwd: '/',
    env: QEMU_ENVIRONMENT,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const { promise, resolve } = Promise.withResolvers<ProbeEnd>();
  let stderr = '';
  let isLate = false;
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(0, MAX_STDERR_BYTES);
  });
  child.once('error', (error) =>
    resolve({ exitStatus: null, signal: null, stderr: error.message, isLate }),
  );
  child.once('close', (exitStatus, signal) => resolve({ exitStatus, signal, stderr, isLate }));
  const deadline = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, DEADLINE_MS);
  const abandon = setTimeout(() => {
    child.stderr.destroy();
    child.unref();
    resolve({ exitStatus: null, signal: 'SIGKILL', stderr, isLate });
  }, DEADLINE_MS + KILL_WAIT_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(deadline);
    clearTimeout(abandon);
  }
}

function judge(end: ProbeEnd): AcceleratorChoice {
  const tcg = (reason: string): AcceleratorChoice => ({ accelerator: 'tcg', reason });
  if (end.isLate) {
    return tcg(
      `${KVM_DEVICE} can be opened, but a test guest did not finish within ${DEADLINE_MS / 1000} s`,
    );
  }
  if (end.exitStatus === PROBE_EXIT_SUCCESS) {
    return { accelerator: 'kvm', reason: 'a test guest ran in KVM' };
  }
  if (end.exitStatus === PROBE_EXIT_WRONG)
    return tcg('a test guest in KVM computed a wrong result');
  const lastLine = lastLineOf(end.stderr);
  if (/Permission denied/i.test(lastLine)) {
    return tcg(`QEMU's user cannot open ${KVM_DEVICE}: ${lastLine}`);
  }
  const how = end.signal === null ? `status ${end.exitStatus}` : end.signal;
  return tcg(`a test guest in KVM ended with ${how}${lastLine && `: ${lastLine}`}`);
}
