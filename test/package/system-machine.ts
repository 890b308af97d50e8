import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, rm, symlink } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '#shared/process/run.ts';
import { GIB } from '#shared/units/bytes.ts';
import { GuestTree } from '../metad/support/guest-tree.ts';

const DISK_BYTES = 6 * GIB;
const MKE2FS_TIMEOUT_MS = 5 * 60_000;
/** Long enough for TCG on a busy host; reaching a limit means a hang. */
const BOOT_TIMEOUT_MS = 15 * 60_000;
const COMMAND_TIMEOUT_MS = 15 * 60_000;
const READY = 'ready-for-commands';
const END = 'end-of-command';

export interface CommandResult {
  readonly status: number;
  /** Output of stdout and stderr. */
  readonly output: string;
}

export interface SystemMachineOptions {
  /** Root of a Debian with a kernel and systemd. */
  readonly tree: string;
  /** Additional files by their path on the disk, copied from the host. */
  readonly files?: Readonly<Record<string, string>>;
  /** Sizes of further empty disks: `/dev/vdb` and so on. */
  readonly moreDiskBytes?: readonly number[];
  readonly kernelArguments?: string;
}

/**
 * A VM with its own disk that boots Debian's kernel and systemd, and runs commands as root. It has
 * no network.
 */
export class SystemMachine implements AsyncDisposable {
  readonly #qemu: ChildProcess;
  readonly #socket: Socket;
  readonly #directory: string;
  #console = '';
  #heard = '';
  #wake: () => void = () => undefined;

  private constructor(directory: string, qemu: ChildProcess, socket: Socket) {
    this.#directory = directory;
    this.#qemu = qemu;
    this.#socket = socket;
    qemu.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#console += text));
    qemu.once('exit', () => this.#wake());
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.#heard += text;
      this.#wake();
    });
    socket.on('error', () => this.#wake());
  }

  static async boot(options: SystemMachineOptions): Promise<SystemMachine> {
    const directory = await mkdtemp(join(tmpdir(), 'gnt-system-'));
    await using undo = new AsyncDisposableStack();
    undo.defer(() => rm(directory, { recursive: true, force: true }));
    const disk = join(directory, 'disk0');
    await writeDisk(disk, options);
    const disks = [disk];
    for (const [index, sizeBytes] of (options.moreDiskBytes ?? []).entries()) {
      const path = join(directory, `disk${index + 1}`);
      await using file = await open(path, 'w', 0o600);
      await file.truncate(sizeBytes);
      disks.push(path);
    }
    const commands = join(directory, 'commands');
    const qemu = spawn('qemu-system-x86_64', await qemuArguments(options, disks, commands), {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    undo.defer(async () => {
      const gone = once(qemu, 'exit');
      if (qemu.exitCode === null && qemu.kill('SIGKILL')) await gone;
    });
    const socket = await connectTo(commands);
    const machine = new SystemMachine(directory, qemu, socket);
    await machine.#until(READY, BOOT_TIMEOUT_MS);
    undo.move();
    return machine;
  }

  /** Output of the kernel and systemd. */
  get console(): string {
    return this.#console;
  }

  /** Runs a shell script in the VM. @param withinMs long enough that only a hang reaches it */
  async try(script: string, withinMs = COMMAND_TIMEOUT_MS): Promise<CommandResult> {
    this.#socket.write(`${Buffer.from(script).toString('base64')}\n`);
    const heard = await this.#until(new RegExp(`${END} (\\d+)\n`), withinMs);
    const end = heard.lastIndexOf(END);
    return { status: Number(heard.slice(end + END.length)), output: heard.slice(0, end).trimEnd() };
  }

  /** @returns the output @throws Error when the script fails */
  async run(script: string): Promise<string> {
    const { status, output } = await this.try(script);
    if (status === 0) return output;
    throw new Error(`'${script}' ended with ${status} in the machine:\n${output}`);
  }

  /** Reboots in order, so that systemd stops the services first. */
  async reboot(): Promise<void> {
    this.#socket.write(`${Buffer.from('systemctl reboot').toString('base64')}\n`);
    await this.#until(READY, 2 * BOOT_TIMEOUT_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    const gone = once(this.#qemu, 'exit');
    if (this.#qemu.exitCode === null && this.#qemu.kill('SIGKILL')) await gone;
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Removes and returns the text up to the end of the pattern. */
  async #until(pattern: string | RegExp, timeoutMs: number): Promise<string> {
    const expression = typeof pattern === 'string' ? new RegExp(`${pattern}\n`) : pattern;
    const deadline = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const found = expression.exec(this.#heard);
      if (found !== null) {
        const end = found.index + found[0].length;
        const heard = this.#heard.slice(0, end);
        this.#heard = this.#heard.slice(end);
        return heard;
      }
      if (this.#qemu.exitCode !== null || this.#qemu.signalCode !== null || deadline.aborted)
        throw new Error(
          `the machine never said ${expression.source}, but ${this.#heard}; its console:\n${this.#console.slice(-8000)}`,
        );
      await Promise.race([
        new Promise<void>((resolve) => (this.#wake = resolve)),
        sleep(1000, undefined, { ref: true }),
      ]);
    }
  }
}

async function writeDisk(path: string, { tree, files = {} }: SystemMachineOptions): Promise<void> {
  await using guest = await GuestTree.create(tree, '');
  for (const [name, from] of Object.entries(files))
    await run('cp', ['-a', from, join(guest.root, name)]);
  await guest.write('usr/local/sbin/commands', COMMANDS);
  await guest.write('etc/systemd/system/commands.service', UNIT);
  await symlink(
    '../commands.service',
    join(guest.root, 'etc/systemd/system/multi-user.target.wants/commands.service'),
  );
  await guest.write('etc/fstab', '/dev/vda / ext4 errors=remount-ro 0 0\n');
  await using file = await open(path, 'w', 0o600);
  await file.truncate(DISK_BYTES);
  await run('mke2fs', ['-q', '-F', '-t', 'ext4', '-d', guest.root, path], {
    timeoutMs: MKE2FS_TIMEOUT_MS,
  });
}

async function qemuArguments(
  { tree, kernelArguments = '' }: SystemMachineOptions,
  disks: readonly string[],
  commands: string,
): Promise<readonly string[]> {
  const names = await readdir(join(tree, 'boot'));
  const find = (prefix: string): string =>
    join(tree, 'boot', names.find((name) => name.startsWith(prefix)) ?? prefix);
  return [
    ...['-accel', 'tcg,thread=multi', '-cpu', 'max,-avx,-avx2,-tsc', '-smp', '2', '-m', '1536'],
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-serial', 'stdio'],
    ...['-kernel', find('vmlinuz-'), '-initrd', find('initrd.img-')],
    ...['-append', `root=/dev/vda rw console=ttyS0 fsck.mode=skip ${kernelArguments}`],
    ...disks.flatMap((path, index) => [
      ...['-drive', `if=none,id=d${index},format=raw,file=${path},cache=unsafe,discard=unmap`],
      ...['-device', `virtio-blk-pci,drive=d${index}`],
    ]),
    ...['-device', 'virtio-serial-pci', '-device', 'virtio-rng-pci'],
    ...['-chardev', `socket,id=commands,path=${commands},server=on,wait=off`],
    ...['-device', 'virtserialport,chardev=commands,name=commands'],
  ];
}

/** QEMU creates its socket shortly after its start. */
async function connectTo(path: string): Promise<Socket> {
  for (let tries = 0; ; tries++) {
    const socket = connect(path);
    try {
      await once(socket, 'connect');
      return socket;
    } catch (error) {
      if (tries > 200) throw error;
      await sleep(50);
    }
  }
}

const COMMANDS = `#!/bin/sh
exec 3<>/dev/virtio-ports/commands
echo ${READY} >&3
while read -r line <&3; do
  echo "$line" | base64 -d >/run/command
  (cd /root && exec sh /run/command) </dev/null >/run/output 2>&1
  status=$?
  cat /run/output >&3
  echo "
${END} $status" >&3
done
`;
/** Starts last and stops first. */
const UNIT = `[Unit]
After=systemd-udev-settle.service dev-virtio\\x2dports-commands.device
Wants=dev-virtio\\x2dports-commands.device

[Service]
ExecStart=/usr/local/sbin/commands
Environment=HOME=/root
KillMode=process
`;
