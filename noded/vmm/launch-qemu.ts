import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { launchProgram } from '#shared/process/launch.ts';
import { createMemoryFile } from '#shared/sys/files.ts';
import { closeFd } from '#shared/sys/libc.ts';
import { openUnixListener } from '#shared/sys/unix-sockets.ts';
import type { ConsoleLog } from '../host/console-log.ts';
import { readBootId } from '../host/process-identity.ts';
import type { GuestFiles } from './guest-files.ts';
import { planFenced } from './fence-script.ts';
import { hasUserNic, type MachineSpec } from './machine.ts';
import { planQemuArguments } from './qemu-arguments.ts';
import { findQemu, planLaunch } from './qemu-command.ts';
import type { ProcessEnd } from './qemu-machine.ts';
import { findKvmGroup, type MachineUsers } from '../host/machine-users.ts';
import type { RunDirectory } from './run-directory.ts';

export interface LaunchedProcess {
  readonly pid: number;
  readonly end: Promise<ProcessEnd>;
}

/** stdin, stdout and stderr. Inherited descriptors follow. */
const STANDARD_DESCRIPTORS = 3;

/**
 * Starts QEMU in its own session with copies of all descriptors, and closes its sockets and logs
 * here. Everything before the spawn is synchronous, so that nothing can fail in between.
 * @param leaseFile lease by which a parent process pauses and kills QEMU; the returned process is
 * that parent
 */
export function launchQemu(
  spec: MachineSpec,
  runDirectory: RunDirectory,
  files: GuestFiles,
  users: MachineUsers,
  consoleLog: ConsoleLog,
  leaseFile: string | null,
): LaunchedProcess {
  const own: (() => void)[] = [];
  const inherited: number[] = [];
  /** @returns the descriptor's number in QEMU */
  const inherit = (fd: number): number => STANDARD_DESCRIPTORS + inherited.push(fd) - 1;
  const listen = (path: string): number => {
    const fd = openUnixListener(path);
    own.push(() => closeFd(fd));
    return fd;
  };
  const closeLater = (fd: number): number => {
    own.push(() => closeSync(fd));
    return fd;
  };
  try {
    const { O_WRONLY, O_CREAT, O_APPEND, O_EXCL } = constants;
    const flags = O_WRONLY | O_CREAT | O_APPEND | O_EXCL;
    const stderr = closeLater(openSync(runDirectory.stderrLog, flags, 0o600));
    const smbios = spec.smbiosStrings ?? [];
    const args = planQemuArguments(spec, {
      qmp: inherit(listen(runDirectory.qmpSocket)),
      console: inherit(listen(runDirectory.consoleSocket)),
      consoleLog: inherit(closeLater(consoleLog.openForAppending())),
      kernel: files.kernel && inherit(files.kernel.fd),
      initrd: files.initrd && inherit(files.initrd.fd),
      smbios: smbios.length === 0 ? undefined : inherit(closeLater(openSmbios(smbios))),
      cdrom: files.cdrom && inherit(files.cdrom.fd),
      uefi: files.uefi && {
        code: inherit(files.uefi.code.fd),
        variables: inherit(files.uefi.variables.fd),
      },
      disks: files.disks.map(({ handle, ...how }) => ({ fd: inherit(handle.fd), ...how })),
      taps: spec.nics.map((nic) => (nic.kind === 'tap' ? inherit(nic.fd) : null)),
    });
    const command = planLaunch({
      command: [findQemu(), ...args],
      users,
      group: spec.accelerator === 'kvm' ? findKvmGroup() : null,
      hasHostNetwork: hasUserNic(spec),
      identityFile: runDirectory.identityFile,
      diesWithParent: leaseFile !== null,
    });
    const kept = leaseFile === null ? command : planFenced(leaseFile, readBootId(), command);
    return spawnDetached(kept, ['ignore', stderr, stderr, ...inherited]);
  } finally {
    for (const close of own) close();
  }
}

/** QEMU reopens it by its descriptor. A file with a path would need permissions for QEMU's user. */
function openSmbios(strings: readonly string[]): number {
  const fd = createMemoryFile('smbios');
  writeSync(fd, encodeSmbiosStrings(strings));
  return fd;
}

function spawnDetached(
  command: readonly string[],
  stdio: readonly ('ignore' | number)[],
): LaunchedProcess {
  const { child, exit } = launchProgram(command, { outlives: true, stdio: [...stdio] });
  const end = exit.then(
    ([exitStatus, signal]) => ({ exitStatus, signal }),
    // The spawn failed: no /bin/sh, no memory.
    () => ({ exitStatus: 127, signal: null }),
  );
  return { pid: child.pid ?? 0, end };
}

/** SMBIOS structure type 11, "OEM Strings" (DSP0134, 7.12). */
const TYPE = 11;
/** Bytes before the strings: type, length, handle, count. */
const HEADER_BYTES = 5;
/** QEMU's own number for the first structure of this type. */
const HANDLE = 0x0e00;
/** The count is a byte. */
const MAX_STRINGS = 255;

/**
 * Encodes a structure with these strings for `-smbios file=`. One file holds strings of any length;
 * `type=11,path=` needs a file per string, and `value=` shows them to every process of the host.
 * @throws RangeError for a string that the format cannot hold
 */
export function encodeSmbiosStrings(strings: readonly string[]): Buffer {
  if (strings.length > MAX_STRINGS) throw new RangeError('more than 255 SMBIOS strings');
  for (const text of strings) {
    if (text === '' || text.includes('\0')) throw new RangeError('not an SMBIOS string');
  }
  const header = Buffer.alloc(HEADER_BYTES);
  header[0] = TYPE;
  header[1] = HEADER_BYTES;
  header.writeUInt16LE(HANDLE, 2);
  header[4] = strings.length;
  const texts = strings.length === 0 ? '\0' : strings.map((text) => `${text}\0`).join('');
  return Buffer.concat([header, Buffer.from(`${texts}\0`)]);
}
