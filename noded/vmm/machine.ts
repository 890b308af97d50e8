import type { HvParameters } from '#shared/contract/machine-parameters.ts';
import type { UefiFirmware } from './find-firmware.ts';
import type { PortedPart } from './hot-plug.ts';
import type { MachineMigration } from './machine-migration.ts';
import type { PowerButton } from './power-button.ts';

export type Accelerator = 'kvm' | 'tcg';
export interface AcceleratorChoice {
  readonly accelerator: Accelerator;
  /** Reason in words for an operator. */
  readonly reason: string;
}

/** `network` is a NIC of a tenant network, `channel` the NIC of the channel. */
export type BootDevice = 'disk' | 'cdrom' | 'network' | 'channel';

export interface MachineSmbios {
  /** DMI's system UUID. */
  readonly uuid: string;
  readonly manufacturer?: string;
  readonly product?: string;
  readonly version?: string;
  readonly serial?: string;
  readonly sku?: string;
  readonly family?: string;
  /** Type 3, asset tag of the chassis. */
  readonly chassisAssetTag?: string;
}

export interface MachineDisk {
  /** Opened by noded (root) and given to QEMU as a descriptor; always raw. */
  readonly path: string;
  /** virtio serial, at most 20 bytes. */
  readonly serial: string;
  readonly readOnly: boolean;
  /** A full host disk is an I/O error of the guest instead of a pause. */
  readonly reportsFullHost?: boolean;
  /** `auto` (default): O_DIRECT if the file system supports it. */
  readonly cache?: 'auto' | 'writeback';
  /** Port in place of the PCI slot of its number. */
  readonly part?: PortedPart | undefined;
}

export type MachineNic =
  | {
      readonly kind: 'tap';
      /** Descriptor of the TAP; start() does not close it. */
      readonly fd: number;
      /** Name of the TAP, for the record. */
      readonly device: string;
      readonly mac: string;
      /**
       * NIC of the channel. It has the last PCI slot of all NICs, or with `isChannelFirst` the
       * first, whatever their number. It boots only for `channel`.
       */
      readonly channel: boolean;
      readonly part?: PortedPart | undefined;
    }
  | {
      readonly kind: 'user';
      readonly mac: string;
      /** It reaches only public addresses. */
      readonly isPublicOnly?: boolean;
      readonly part?: PortedPart | undefined;
    };

/** A part that can be plugged into a running guest. */
export type PluggedPart = PortedPart &
  ({ readonly disk: MachineDisk } | { readonly nic: MachineNic });

export interface MachineSpec {
  /** Permanent UUID of the instance, name of the run directory. */
  readonly uuid: string;
  /** Name of the instance, shown in QEMU's process title. */
  readonly name: string;
  readonly smbios: MachineSmbios;
  /** SMBIOS type 11. Every user in the guest can read it: never a secret. */
  readonly smbiosStrings?: readonly string[];
  readonly memoryMiB: number;
  readonly vcpus: number;
  readonly accelerator: Accelerator;
  /**
   * Direct kernel boot. The mode of the files must allow every user to read; folders do not matter.
   */
  readonly kernel?:
    | {
        readonly kernelPath: string;
        readonly initrdPath?: string | undefined;
        readonly append?: string | undefined;
      }
    | undefined;
  /** Devices to boot from, first to last; default `['disk']`. Ignored with `kernel`. */
  readonly bootOrder?: readonly BootDevice[];
  /** In the guest's order: vda, vdb, … */
  readonly disks: readonly MachineDisk[];
  /** In the guest's order. */
  readonly nics: readonly MachineNic[];
  /** Puts the channel's NIC before all others, for guests that use DHCP only on their first NIC. */
  readonly isChannelFirst?: boolean;
  readonly cdromPath?: string | undefined;
  /** Absent: a BIOS. */
  readonly uefi?:
    | {
        /** Variables of the instance, copied from the firmware's when missing. */
        readonly variablesPath: string;
        /** Absent: the firmware of the host. */
        readonly firmwares?: readonly UefiFirmware[];
      }
    | undefined;
  /** A ROM in place of the BIOS that can only start the kernel. */
  readonly kernelStarterPath?: string;
  /**
   * Hypervisor parameters that the command line reads by itself: devices without a file. Absent in
   * installations.
   */
  readonly hvparams?: HvParameters;
  /** QEMU ends when the guest reboots. */
  readonly noReboot: boolean;
  /** The disks are shared: it runs only while its node may write them. */
  readonly isFenced?: boolean;
  /** Creates ports for hot-plugged parts. */
  readonly hasPorts?: boolean;
  /** Waits for the state of a migrating guest and for `cont`. */
  readonly isExpected?: boolean;
}

/** QEMU serves a user-mode NIC with sockets of the host. */
export function hasUserNic({ nics }: Pick<MachineSpec, 'nics'>): boolean {
  return nics.some((nic) => nic.kind === 'user');
}

/** QEMU has one user for all of its NICs, so the strictest NIC counts. */
export function isPublicOnly({ nics }: Pick<MachineSpec, 'nics'>): boolean {
  return nics.some((nic) => nic.kind === 'user' && nic.isPublicOnly === true);
}

export type MachineExitReason =
  /** The guest powered itself off (also after powerdown()) and QEMU exited with status 0. */
  | 'guest-shutdown'
  /** The guest reset itself with `noReboot`, and QEMU exited with status 0. */
  | 'guest-reboot'
  | 'guest-panic'
  /** kill(), or a signal that asks QEMU to end. */
  | 'host-request'
  | 'crashed'
  /** An adopted QEMU process ended without a QMP event. */
  | 'unknown';

export interface MachineExit {
  readonly reason: MachineExitReason;
  /**
   * Null after a signal, and for adopted processes, whose status only their first parent receives.
   */
  readonly exitStatus: number | null;
  readonly signal: string | null;
  /** Last lines of QEMU's stderr, at most 4 KiB. */
  readonly stderrTail: string;
  /** Last output of the guest's serial console, at most 16 KiB. */
  readonly consoleTail: string;
}

/** A guest that QEMU stopped at a failed write. QEMU repeats the write when the guest continues. */
export interface GuestHalt {
  readonly reason: 'disk-full' | 'disk-error';
  /** Milliseconds since the epoch; the adoption for a guest that was adopted in this state. */
  readonly sinceMs: number;
}

export interface Machine {
  readonly uuid: string;
  readonly pid: number;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  readonly accelerator: Accelerator;
  /** Device of the channel's NIC. */
  readonly tap: string | null;
  /** Unix socket of ttyS0; one client at a time. */
  readonly consoleSocket: string;
  /** Never rejects. Resolves after the run directory was removed. */
  readonly exited: Promise<MachineExit>;
  /** Resets of the guest that this daemon has seen, within the same QEMU process. */
  readonly guestResets: number;
  /** Null unless the guest is stopped. */
  readonly halt: GuestHalt | null;
  readonly migration: MachineMigration;
  isRunning(): boolean;
  /**
   * Pauses the guest after writing all of its data to the files of its disks.
   * @throws AppError QMP
   */
  pause(): Promise<void>;
  /** Continues a paused guest. @throws AppError QMP */
  resume(): Promise<void>;
  /**
   * Replaces the text in the run directory, which only root can read. Later daemons find it with
   * the QEMU process. Never a secret.
   */
  writeNote(note: string): Promise<void>;
  /** Replaces the result of adopt(). */
  writeMeta(meta: Readonly<Record<string, string>>): Promise<void>;
  /** Returns a path in the run directory. */
  pathOf(name: string): string;
  readNote(): Promise<string | undefined>;
  /**
   * Returns whether the guest would react to the power button now; undefined if QEMU cannot tell.
   * @throws AppError QMP
   */
  powerButton(): Promise<PowerButton | undefined>;
  /** Presses the power button (ACPI). @throws AppError QMP */
  powerdown(): Promise<void>;
  /**
   * Grows a disk and notifies the guest.
   * @param disk UUID of a disk in a port, or the number among those without a port
   * @throws AppError QMP
   */
  growDisk(disk: string | number, sizeBytes: number): Promise<void>;
  /** Returns the UUIDs of disks and NICs in ports. @throws AppError QMP */
  plugged(): Promise<ReadonlySet<string>>;
  /** Puts a disk or a NIC into a port. @throws AppError QMP; nothing was changed */
  plug(part: PluggedPart): Promise<void>;
  /**
   * Asks the guest to release a part from its port.
   * @returns whether it did in time
   * @throws AppError QMP
   */
  unplug(uuid: string): Promise<boolean>;
  /** Called for each part that the guest releases after that time. */
  onRelease?: ((uuid: string) => void) | undefined;
  /** Presses reset. @throws AppError QMP */
  reset(): Promise<void>;
  /** Ends QEMU by SIGTERM, which flushes the disks, then by SIGKILL. Idempotent. */
  kill(): Promise<MachineExit>;
}
