import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '#shared/clock/clock.ts';
import { silentLogger } from '#shared/log/log.ts';
import { ConsoleLogs } from '../../../noded/host/console-log.ts';
import { DEFAULT_FIRST_MACHINE_UID, planMachineUsers } from '../../../noded/host/machine-users.ts';
import type { HypervisorOptions } from '../../../noded/vmm/hypervisor.ts';
import type { Machine, MachineSpec } from '../../../noded/vmm/machine.ts';

/**
 * A guest of 512 bytes. Booted by the BIOS it says "up" on ttyS0, then powers off when its power
 * button is pressed, and obeys letters from ttyS0: `o` powers off, `r` resets, `f` floods ttyS0
 * with "x" for ever; others come back.
 */
const INSTRUCTIONS = [
  // cli; %ds = %ss = 0; %sp = 0x7c00; sti
  'fa 31c0 8ed8 8ed0 bc007c fb',
  // port 0x602 (PM1_EN) = power button
  'ba0206 b80001 ef',
  // write the text
  'be6f7c ac 84c0 7405 e84100 ebf6',
  // loop: hlt; power button in 0x600 (PM1_STS)? -> off; a byte in 0x3fd? -> read it from 0x3f8
  'f4 ba0006 ed f6c401 751d bafd03 ec a801 74ee baf803 ec',
  // 'o' -> off; 'r' -> reset; 'f' -> flood; else write it; loop
  '3c6f 740d 3c72 7412 3c66 7416 e81a00 ebd9',
  // off: 0x604 (PM1_CNT) = sleep; reset: 0xcf9 = 6; flood: write x
  'ba0406 b80020 ef ebd0 baf90c b006 ee ebc8 b078 e80200 ebf9',
  // write: wait for 0x3fd to be ready, byte to 0x3f8
  '52 50 bafd03 ec a820 74fb 58 baf803 ee 5a c3',
  // "up\r\n\0"
  '75700d0a00',
];

/** In their place: 0x604 (PM1_CNT) = ACPI is on, so that the guest ignores the button. */
const BUTTON = 'ba0206b80001ef';
const NO_BUTTON = 'ba0406b80100ef';

export async function writeTinyDisk(path: string, { hasPowerButton = true } = {}): Promise<void> {
  const disk = Buffer.alloc(1024 * 1024);
  bootSector(hasPowerButton).copy(disk);
  await writeFile(path, disk, { mode: 0o600 });
}

/** The 512 bytes at the beginning of a disk that are the whole guest. */
export function bootSector(hasPowerButton = true): Buffer {
  const sector = Buffer.alloc(512);
  const program = INSTRUCTIONS.join('').replaceAll(' ', '');
  sector.write(hasPowerButton ? program : program.replace(BUTTON, NO_BUTTON), 'hex');
  sector.writeUInt16BE(0x55aa, 510);
  return sector;
}

export const machineUsers = planMachineUsers(DEFAULT_FIRST_MACHINE_UID);

/** Returns the options of a hypervisor whose user-NIC firewall does nothing. */
export function tinyHost(vmDir: string): HypervisorOptions {
  const nothing = (): Promise<void> => Promise.resolve();
  const wall = {
    ...{ raiseFor: nothing, openFor: nothing, lowerFor: nothing, tidy: nothing },
    [Symbol.asyncDispose]: nothing,
  };
  const quiet = { logger: silentLogger, clock: systemClock };
  return { vmDir, users: machineUsers, wall, leaseFile: null, ...quiet };
}

export function tinySpec(diskPath: string, changes: Partial<MachineSpec> = {}): MachineSpec {
  return {
    uuid: randomUUID(),
    name: 'tiny.example.com',
    smbios: { uuid: randomUUID() },
    memoryMiB: 32,
    vcpus: 1,
    accelerator: 'tcg',
    disks: [{ path: diskPath, serial: 'tiny', readOnly: false }],
    nics: [],
    noReboot: false,
    ...changes,
  };
}

const DEADLINE_MS = 60_000;
const POLL_MS = 20;
const TAIL_BYTES = 65_536;

/** A client of the guest's console. */
export interface TinyConsole extends Disposable {
  write(text: string): void;
  /** Resolves when the guest has said `text`, now or before. */
  sees(text: string): Promise<void>;
}

export async function openConsole(machine: Machine): Promise<TinyConsole> {
  const socket: Socket = connect(machine.consoleSocket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  // Output from before the connection is in the log only.
  const log =
    new ConsoleLogs().ofProcess(machine.pid) ?? assert.fail('the machine has no console log');
  return {
    write: (text) => socket.write(text),
    sees: async (text) => {
      const deadline = performance.now() + DEADLINE_MS;
      while (!log.readTail(TAIL_BYTES).includes(text)) {
        assert.ok(performance.now() < deadline, `the guest did not say ${text}`);
        await delay(POLL_MS);
      }
    },
    [Symbol.dispose]: () => {
      socket.destroy();
      log.close();
    },
  };
}
