import type { HvParameters } from '#shared/contract/machine-parameters.ts';
import type { UefiFirmware } from './find-firmware.ts';
import type { PortedPart } from './hot-plug.ts';
import type { MachineMigration } from './machine-migration.ts';
import type { PowerButton } from './power-button.ts';

export type Accelerator = 'kvm' | 'tcg';
export interface AcceleratorChoice {
  readonly accelerator: Accelerator;
  /** Why it is so, in words for an operator. */
  readonly reason: string;
}

/** `network` is a NIC's of the operator's, `channel` the one to the host. */
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
  /** Type 3, the chassis' asset tag. */
  readonly chassisAssetTag?: string;
}

export interface MachineDisk {
  /** Opened by noded (root) and given to QEMU as a descriptor; always raw. */
  readonly path: string;
  /** virtio serial, at most 20 bytes. */
  readonly serial: string;
  readonly readOnly: boolean;
  /** A full host is an I/O error of the guest instead of a pause. */
  readonly reportsFullHost?: boolean;
  /** `auto` (default): O_DIRECT where the file system has it. */
  readonly cache?: 'auto' | 'writeback';
  /** In a port, in place of the slot of its number. */
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
       * The channel's NIC: has the last PCI slot of all NICs, or with `isChannelFirst` the first,
       * whatever their number, and boots for `channel` alone.
       */
      readonly channel: boolean;
      readonly part?: PortedPart | undefined;
    }
  | {
      readonly kind: 'user';
      readonly mac: string;
      /** It reaches public addresses only. */
      readonly isPublicOnly?: boolean;
      readonly part?: PortedPart | undefined;
    };

/** What may come while a machine runs. */
export type PluggedPart = PortedPart &
  ({ readonly disk: MachineDisk } | { readonly nic: MachineNic });

export interface MachineSpec {
  /** The instance's permanent UUID: names the run directory. */
  readonly uuid: string;
  /** The instance's name, shown in QEMU's process title. */
  readonly name: string;
  readonly smbios: MachineSmbios;
  /** SMBIOS type 11, which whoever is in the guest reads: never a secret. */
  readonly smbiosStrings?: readonly string[];
  readonly memoryMiB: number;
  readonly vcpus: number;
  readonly accelerator: Accelerator;
  /**
   * Direct kernel boot. Files must be readable by everybody (their own mode; folders do not
   * matter).
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
  /** The machine's NICs, in the order in which the guest finds them. */
  readonly nics: readonly MachineNic[];
  /**
   * The channel's NIC comes before all others: for guests that ask by DHCP on their first alone.
   */
  readonly isChannelFirst?: boolean;
  readonly cdromPath?: string | undefined;
  /** Absent: a BIOS. */
  readonly uefi?:
    | {
        /** The machine's own variables, made from the firmware's when there are none. */
        readonly variablesPath: string;
        /** Absent: those of the host. */
        readonly firmwares?: readonly UefiFirmware[];
      }
    | undefined;
  /** A ROM in place of the BIOS, which can do no more than start the kernel. */
  readonly kernelStarterPath?: string;
  /**
   * Hypervisor parameters that the command line reads by itself: devices without a file. Absent in
   * installations.
   */
  readonly hvparams?: HvParameters;
  /** The machine ends when the guest reboots. */
  readonly noReboot: boolean;
  /** Its disks are shared: it runs only while its node may write them. */
  readonly isFenced?: boolean;
  /** There are ports for what comes while it runs. */
  readonly hasPorts?: boolean;
  /** It does not run before it has the state of another one, and is let go on. */
  readonly isExpected?: boolean;
}

/** QEMU itself speaks for a user-mode NIC, with sockets of the host. */
export function hasUserNic({ nics }: Pick<MachineSpec, 'nics'>): boolean {
  return nics.some((nic) => nic.kind === 'user');
}

/** QEMU has one user for all of its NICs: the strictest of them counts. */
export function isPublicOnly({ nics }: Pick<MachineSpec, 'nics'>): boolean {
  return nics.some((nic) => nic.kind === 'user' && nic.isPublicOnly === true);
}

export type MachineExitReason =
  /** The guest powered itself off (also after powerdown()) and QEMU ended with status 0. */
  | 'guest-shutdown'
  /** The guest reset itself in a machine with `noReboot`, and QEMU ended with status 0. */
  | 'guest-reboot'
  | 'guest-panic'
  /** kill(), or a signal that asks QEMU to end. */
  | 'host-request'
  | 'crashed'
  /** An adopted machine that ended without a word. */
  | 'unknown';

export interface MachineExit {
  readonly reason: MachineExitReason;
  /**
   * Null when a signal ended it, and for adopted machines, whose status only their first parent
   * gets.
   */
  readonly exitStatus: number | null;
  readonly signal: string | null;
  /** Last lines of QEMU's stderr, at most 4 KiB. */
  readonly stderrTail: string;
  /** Last output of the guest's serial console, at most 16 KiB. */
  readonly consoleTail: string;
}

/** A guest that QEMU has stopped at a write that failed; the write is repeated when it goes on. */
export interface GuestHalt {
  readonly reason: 'disk-full' | 'disk-error';
  /** Milliseconds since the epoch; of a machine that was adopted halted, since then. */
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
  /** Never rejects. The run directory is gone when it resolves. */
  readonly exited: Promise<MachineExit>;
  /** How often the guest has begun anew since this daemon knows it, with the same QEMU. */
  readonly guestResets: number;
  /** Null while the guest goes on. */
  readonly halt: GuestHalt | null;
  readonly migration: MachineMigration;
  isRunning(): boolean;
  /**
   * Lets the guest stand still, with all that it has written in its disks' files.
   * @throws AppError QMP
   */
  pause(): Promise<void>;
  /** Lets a guest that stands still go on. @throws AppError QMP */
  resume(): Promise<void>;
  /**
   * Keeps a text in the run directory, which is root's alone, in place of the one before: for
   * whoever finds the machine and nothing else of it. Never a secret.
   */
  writeNote(note: string): Promise<void>;
  /** Replaces what adopt() gives back. */
  writeMeta(meta: Readonly<Record<string, string>>): Promise<void>;
  /** A path in its run directory. */
  pathOf(name: string): string;
  /** Undefined when there is none. */
  readNote(): Promise<string | undefined>;
  /**
   * Whether the guest would hear of the power button now; undefined where QEMU cannot tell.
   * @throws AppError QMP
   */
  powerButton(): Promise<PowerButton | undefined>;
  /** Presses the power button (ACPI). @throws AppError QMP */
  powerdown(): Promise<void>;
  /**
   * Makes a disk larger under the guest, which is told.
   * @param disk the UUID of one in a port, or its number among those in no port
   * @throws AppError QMP
   */
  growDisk(disk: string | number, sizeBytes: number): Promise<void>;
  /** UUIDs of the disks and cards in its ports. @throws AppError QMP */
  plugged(): Promise<ReadonlySet<string>>;
  /** Puts a disk or a card into a port. @throws AppError QMP; nothing was changed then */
  plug(part: PluggedPart): Promise<void>;
  /**
   * Asks the guest to let go of what is in a port.
   * @returns whether it did, in the time that it has for it
   * @throws AppError QMP
   */
  unplug(uuid: string): Promise<boolean>;
  /** Told of each part that the guest lets go of after that, when it is out of the machine. */
  onRelease?: ((uuid: string) => void) | undefined;
  /** Presses reset. @throws AppError QMP */
  reset(): Promise<void>;
  /** Ends it, first by SIGTERM so that disks are flushed, then by SIGKILL. Idempotent. */
  kill(): Promise<MachineExit>;
}
