import {
  createMachineMigration,
  type MachineMigration,
} from '../../../noded/vmm/machine-migration.ts';
import type { PowerButton } from '../../../noded/vmm/power-button.ts';
import type {
  GuestHalt,
  Machine,
  MachineExit,
  MachineExitReason,
  PluggedPart,
} from '../../../noded/vmm/machine.ts';

/** A machine that ends when a test says so, or when it is killed. */
export class FakeMachine implements Machine {
  readonly uuid: string;
  readonly pid = 4242;
  readonly startedAtMs: number;
  readonly accelerator = 'tcg';
  readonly tap = 'gnt.com.0';
  readonly consoleSocket: string;
  readonly #exited = Promise.withResolvers<MachineExit>();
  #isRunning = true;
  kills = 0;
  halt: GuestHalt | null = null;
  pauses = 0;
  resumes = 0;
  guestResets = 0;
  readonly ports = new Set<string>();
  note: string | undefined = undefined;
  /** Last lines of the console. */
  consoleTail = '';

  constructor(
    uuid = 'f6a7c1f6-7f0f-4c1e-9df6-3a5a6fd1a001',
    consoleSocket = '/nowhere/console.sock',
    startedAtMs = 0,
  ) {
    this.uuid = uuid;
    this.startedAtMs = startedAtMs;
    this.consoleSocket = consoleSocket;
  }

  get exited(): Promise<MachineExit> {
    return this.#exited.promise;
  }

  end(reason: MachineExitReason, details: Partial<MachineExit> = {}): void {
    this.#isRunning = false;
    this.#exited.resolve({
      reason,
      exitStatus: reason === 'crashed' ? 1 : 0,
      signal: null,
      stderrTail: '',
      consoleTail: this.consoleTail,
      ...details,
    });
  }

  writeNote(note: string): Promise<void> {
    this.note = note;
    return Promise.resolve();
  }

  writeMeta(): Promise<void> {
    return Promise.resolve();
  }

  pathOf(name: string): string {
    return `/nowhere/${name}`;
  }

  /** It does not migrate, and says so. */
  readonly migration: MachineMigration = {
    ...createMachineMigration(() => Promise.reject(new Error('it has no QEMU'))),
    state: () => Promise.resolve({ run: 'running', migration: 'none', isMirrored: false }),
  };

  readNote(): Promise<string | undefined> {
    return Promise.resolve(this.note);
  }

  isRunning(): boolean {
    return this.#isRunning;
  }

  pause(): Promise<void> {
    this.pauses += 1;
    return Promise.resolve();
  }

  resume(): Promise<void> {
    this.resumes += 1;
    this.halt = null;
    return Promise.resolve();
  }

  powerButton(): Promise<PowerButton | undefined> {
    return Promise.resolve('heard');
  }

  powerdown(): Promise<void> {
    return Promise.resolve();
  }

  plugged(): Promise<ReadonlySet<string>> {
    return Promise.resolve(this.ports);
  }

  plug({ uuid }: PluggedPart): Promise<void> {
    this.ports.add(uuid);
    return Promise.resolve();
  }

  unplug(uuid: string): Promise<boolean> {
    return Promise.resolve(this.ports.delete(uuid));
  }

  growDisk(): Promise<void> {
    return Promise.resolve();
  }

  reset(): Promise<void> {
    return Promise.resolve();
  }

  kill(): Promise<MachineExit> {
    this.kills += 1;
    this.end('host-request');
    return this.exited;
  }
}
