import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { applianceManifest } from '#shared/contract/appliance-manifest.ts';
import type { InstallEvent, InstallReport } from '#shared/contract/install-event.ts';
import { KERNEL_STARTER } from '../../../noded/provision/appliance/appliance-machine.ts';
import { type StandInContent, StandInHost } from './stand-in-host.ts';

export interface VmDisk {
  readonly path: string;
  readonly serial: string;
  readonly readOnly?: boolean;
}

export interface ApplianceRun {
  readonly events: readonly InstallEvent[];
  readonly reports: readonly InstallReport[];
  readonly requests: readonly string[];
  readonly console: string;
  readonly exitStatus: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly wallMs: number;
}

/** Reached only by a hang: a boot on a busy machine takes minutes. */
const BOOT_DEADLINE_MS = 600_000;
const CONSOLE_TAIL_CHARACTERS = 4096;
const CHANNEL_MAC = 'aa:00:00:00:77:07';

/**
 * Boots the appliance of a directory with these disks, serves it `content`, and waits until it has
 * powered off. Rejects with the end of its console when its agent never reported.
 */
export async function bootAppliance(
  applianceDir: string,
  disks: readonly VmDisk[],
  content: StandInContent,
  deadlineMs = BOOT_DEADLINE_MS,
): Promise<ApplianceRun> {
  const host = await StandInHost.start(content);
  try {
    const startedAt = performance.now();
    const child = spawn('qemu-system-x86_64', planArguments(applianceDir, disks), {
      stdio: ['ignore', 'pipe', 'pipe', host.tapFd],
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs);
    const ended = await new Promise<{ exitStatus: number | null; signal: NodeJS.Signals | null }>(
      (resolve) => child.on('close', (exitStatus, signal) => resolve({ exitStatus, signal })),
    );
    clearTimeout(timer);
    if (host.events.length === 0) {
      const how = `status ${ended.exitStatus}, signal ${ended.signal}`;
      throw new Error(`the agent said nothing (${how}):\n${said.slice(-CONSOLE_TAIL_CHARACTERS)}`);
    }
    return {
      ...ended,
      events: host.events,
      reports: host.reports,
      requests: host.requests,
      console: said,
      wallMs: performance.now() - startedAt,
    };
  } finally {
    await host.stop();
  }
}

function planArguments(applianceDir: string, disks: readonly VmDisk[]): string[] {
  const manifest = applianceManifest.parse(
    JSON.parse(readFileSync(join(applianceDir, 'manifest.json'), 'utf8')),
  );
  const root: VmDisk = {
    path: join(applianceDir, manifest.root.name),
    serial: 'root',
    readOnly: true,
  };
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-machine', 'q35'],
    ...['-accel', 'tcg,thread=multi,tb-size=128', '-cpu', 'max,-erms,-tsc', '-smp', '1'],
    ...['-m', `${manifest.memoryMiB}M`, '-serial', 'stdio'],
    ...(existsSync(KERNEL_STARTER) ? ['-bios', KERNEL_STARTER] : []),
    ...['-kernel', join(applianceDir, manifest.kernel.name)],
    ...['-initrd', join(applianceDir, manifest.initrd.name)],
    ...['-append', `${manifest.kernelArguments} ${manifest.emulatedKernelArguments}`],
    ...['-netdev', 'tap,id=net0,fd=3'],
    ...['-device', `virtio-net-pci,netdev=net0,mac=${CHANNEL_MAC},romfile=`],
    ...[root, ...disks].flatMap((disk, index) => [
      '-blockdev',
      `driver=raw,node-name=disk${index},read-only=${disk.readOnly === true ? 'on' : 'off'},discard=unmap,file.driver=file,file.filename=${disk.path},file.discard=unmap`,
      '-device',
      `virtio-blk-pci,drive=disk${index},serial=${disk.serial}`,
    ]),
  ];
}
