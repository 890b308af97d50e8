import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile, chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchProgram } from '#shared/process/launch.ts';
import { lastLineOf } from '#shared/text/lines.ts';
import type { AcceleratorChoice } from './machine.ts';
import { findQemu, planLaunch } from './qemu-command.ts';
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
  const { child, kill } = launchProgram(command, { stdio: ['ignore', 'ignore', 'pipe'] });
  const { promise, resolve } = Promise.withResolvers<ProbeEnd>();
  let stderr = '';
  let isLate = false;
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(0, MAX_STDERR_BYTES);
  });
  child.once('error', (error) =>
    resolve({ exitStatus: null, signal: null, stderr: error.message, isLate }),
  );
  child.once('close', (exitStatus, signal) => resolve({ exitStatus, signal, stderr, isLate }));
  const deadline = setTimeout(() => {
    isLate = true;
    kill();
  }, DEADLINE_MS);
  const abandon = setTimeout(() => {
    child.stderr?.destroy();
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

/**
 * Smallest guest that tests whether an accelerator runs real guests. The 64 KiB firmware image goes
 * from the reset vector to long mode with paging. It does a 16-byte compare-and-exchange and an
 * SSE2 addition, checks both and counts to 2^24. It writes to the debug-exit port 0xf4: 0x15 for
 * success, 0x16 for a wrong result. (A half-working KVM runs real mode well enough for a BIOS.)
 */
const FIRMWARE_BYTES = 65_536;
const RESET_VECTOR = 0xfff0;

const instructions = [
  // 16 bit: cli; lgdtl %cs:gdtr; cr0.PE = 1; ljmpl $0x08, $pm
  'fa 2e660f0116d800 0f20c0 0c01 0f22c0 66ea18000f000800',
  // pm, 32 bit: %ds = %ss = 0x10
  '66b81000 8ed8 8ed0',
  // page tables at 0x1000: one 2 MiB page, one to one
  'c7050010000003200000 c7050020000003300000 c7050030000083000000',
  // cr3 = 0x1000; cr4 = PAE | OSFXSR; EFER.LME = 1; cr0 = PG | ET | MP | PE; ljmpl $0x18, $lm
  'b800100000 0f22d8 b820020000 0f22e0 b9800000c0 0f32 0d00010000 0f30 b813000080 0f22c0 ea6b000f001800',
  // lm, 64 bit: %rdi = 0x8000; %rax = %rdx = 0; %ebx = 1; %ecx = 2; lock cmpxchg16b (%rdi); jnz
  // fail
  'bf00800000 31c0 31d2 8d5801 8d4802 f0480fc70f 752c',
  // cmpq $1, (%rdi); jne fail; cmpq $2, 8(%rdi); jne fail
  '48833f01 7526 48837f0802 751f',
  // %xmm0 = (%rdi); %xmm0 += %xmm0; cmp $2, %eax; jne fail
  '660f6f07 660fd4c0 66480f7ec0 83f802 750d',
  // count; out 0x15
  'b900000001 ffc9 75fc b015 e6f4',
  // fail: out 0x16; hlt; jmp fail
  'b016 e6f4 f4 ebf9',
  // nop; the descriptors: null, 32-bit code, data, 64-bit code; their table's register
  '0f1f40000000000000000000 ffff0000009acf00 ffff00000092cf00 ffff0000009aaf00 1f00 b8000f00',
];

/** QEMU exits with (value << 1) | 1 for a value written to debug-exit. */
export const PROBE_EXIT_SUCCESS = (0x15 << 1) | 1;
export const PROBE_EXIT_WRONG = (0x16 << 1) | 1;

export function createProbeFirmware(): Buffer {
  const firmware = Buffer.alloc(FIRMWARE_BYTES);
  Buffer.from(instructions.join('').replaceAll(' ', ''), 'hex').copy(firmware);
  // jmp to the start of the segment
  Buffer.from('e90d00', 'hex').copy(firmware, RESET_VECTOR);
  return firmware;
}
