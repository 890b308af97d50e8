import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createHypervisor } from '../../../noded/vmm/hypervisor.ts';
import type { Hypervisor } from '../../../noded/vmm/hypervisor.ts';
import type { Machine, MachineExit } from '../../../noded/vmm/machine.ts';
import { createChannelNetwork } from '../../../noded/net/channel/channel-network.ts';
import { silentLogger } from '#shared/log/log.ts';
import { machineUsers, openConsole, tinyHost, tinySpec, writeTinyDisk } from './tiny-guest.ts';

const DEADLINE_MS = 120_000;

describe('the hypervisor', () => {
  let directory: string;
  let vmDir: string;
  let disk: string;
  let hypervisor: Hypervisor;
  const machines: Machine[] = [];

  const newHypervisor = (): Hypervisor => createHypervisor(tinyHost(vmDir));

  const start = async (...args: Parameters<Hypervisor['start']>): Promise<Machine> => {
    const machine = await hypervisor.start(...args);
    machines.push(machine);
    return machine;
  };

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gnt-test-vm-'));
    vmDir = join(directory, 'run/vm');
    disk = join(directory, 'disk');
    await writeTinyDisk(disk);
    hypervisor = newHypervisor();
  });
  afterEach(async () => {
    await Promise.all(machines.splice(0).map((machine) => machine.kill()));
    assert.deepEqual(existsSync(vmDir) ? readdirSync(vmDir) : [], [], 'run directories are left');
  });
  after(async () => {
    await rm(directory, { recursive: true });
  });

  /** Keeps the test's process alive while it waits: a machine itself does not. */
  async function endOf(machine: Machine): Promise<MachineExit> {
    const timeout = AbortSignal.timeout(DEADLINE_MS);
    const keepAlive = setTimeout(() => undefined, DEADLINE_MS);
    try {
      return await Promise.race([
        machine.exited,
        once(timeout, 'abort').then(() => assert.fail('the machine does not end')),
      ]);
    } finally {
      clearTimeout(keepAlive);
    }
  }

  test('runs QEMU as a user without rights, sandboxed, with an empty environment and root-only files', async () => {
    const machine = await start(tinySpec(disk));
    const status = readFileSync(`/proc/${machine.pid}/status`, 'utf8');
    const id = machineUsers.first + machine.pid;
    for (const name of ['Uid', 'Gid'])
      assert.match(status, new RegExp(`^${name}:\t${id}\t${id}\t${id}\t${id}$`, 'm'));
    assert.match(status, /^Groups:\s*$/m);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
      assert.match(status, new RegExp(`^${set}:\t0000000000000000$`, 'm'));
    }
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.match(status, /^Seccomp:\t2$/m);
    assert.match(readFileSync(`/proc/${machine.pid}/limits`, 'utf8'), /core file size +1 +1 /);
    const environment = readFileSync(`/proc/${machine.pid}/environ`, 'utf8').split('\0');
    assert.deepEqual(
      environment.map((entry) => entry.split('=')[0]),
      ['PATH', ''],
    );
    const listing = execFileSync('stat', ['-c', '%a %U', join(vmDir, machine.uuid)]);
    assert.equal(String(listing).trim(), '700 root');
  });

  test('boots a block device of the host by an open descriptor, past the page cache', async () => {
    const loop = String(execFileSync('losetup', ['--find', '--show', disk])).trim();
    try {
      const machine = await start(tinySpec(loop));
      using console = await openConsole(machine);
      await console.sees('up\r\n');
      const command = readFileSync(`/proc/${machine.pid}/cmdline`, 'utf8');
      assert.match(command, /driver=host_device,[^\0]*cache\.direct=on/);
      await machine.kill();
    } finally {
      execFileSync('losetup', ['--detach', loop]);
    }
  });

  test('boots a disk that only root may read, and reports a power-off by the guest', async () => {
    const machine = await start(tinySpec(disk));
    using console = await openConsole(machine);
    await console.sees('up\r\n');
    assert.ok(machine.isRunning());
    console.write('a');
    await console.sees('a');
    console.write('o');
    const exit = await endOf(machine);
    assert.equal(exit.reason, 'guest-shutdown');
    assert.equal(exit.exitStatus, 0);
    assert.match(exit.consoleTail, /up\r\na/);
    assert.equal(machine.isRunning(), false);
  });

  test('makes a disk larger while the guest runs', async () => {
    const path = join(directory, 'grows.img');
    await writeTinyDisk(path);
    const machine = await start(tinySpec(path));
    await machine.growDisk(0, 4 * 1024 * 1024);
    // Not we, QEMU has done it, which tells the guest.
    assert.equal(statSync(path).size, 4 * 1024 * 1024);
    await assert.rejects(machine.growDisk(1, 4 * 1024 * 1024), { code: 'QMP' });
    await machine.kill();
  });

  test('presses the power button and reset', async () => {
    const machine = await start(tinySpec(disk));
    {
      using console = await openConsole(machine);
      await console.sees('up\r\n');
      await machine.reset();
      await console.sees('up\r\nup');
      assert.equal(await machine.powerButton(), 'heard');
    }
    await machine.powerdown();
    assert.equal((await endOf(machine)).reason, 'guest-shutdown');
    await assert.rejects(machine.powerdown(), /./);
  });

  test('ends a QEMU process with noReboot when the guest reboots', async () => {
    const machine = await start(tinySpec(disk, { noReboot: true }));
    using console = await openConsole(machine);
    await console.sees('up\r\n');
    console.write('r');
    assert.equal((await endOf(machine)).reason, 'guest-reboot');
  });

  test('kills a stopped QEMU process, and returns the same result when called again', async () => {
    const machine = await start(tinySpec(disk));
    using console = await openConsole(machine);
    await console.sees('up\r\n');
    console.write('f');
    process.kill(machine.pid, 'SIGSTOP');
    const [first, second] = await Promise.all([machine.kill(), machine.kill()]);
    assert.equal(first.reason, 'host-request');
    assert.equal(first.signal, 'SIGKILL');
    assert.equal(second, first);
    assert.equal(await machine.kill(), first);
  });

  test('reports a QEMU process that a SIGSEGV ends as crashed', async () => {
    const machine = await start(tinySpec(disk));
    process.kill(machine.pid, 'SIGSEGV');
    const exit = await endOf(machine);
    assert.deepEqual([exit.reason, exit.signal], ['crashed', 'SIGSEGV']);
  });

  test('refuses to start a running instance, also from a second hypervisor', async () => {
    const spec = tinySpec(disk);
    const machine = await start(spec);
    await assert.rejects(hypervisor.start(spec), { code: 'INSTANCE_STATE' });
    await assert.rejects(newHypervisor().start(spec), { code: 'INSTANCE_STATE' });
    assert.ok(machine.isRunning());
    await machine.kill();
    const again = await start(spec);
    assert.ok(again.isRunning());
  });

  test('refuses to start a second QEMU process on the same disk', async () => {
    await start(tinySpec(disk));
    await assert.rejects(hypervisor.start(tinySpec(disk)), (error: unknown) => {
      assert.ok(error instanceof Error);
      assert.equal('code' in error && error.code, 'QEMU_FAILED');
      assert.match(error.message, /tiny\.example\.com: .*lock/);
      return true;
    });
  });

  test('fails to start with the reason, and leaves no run directory', async () => {
    const closedKernel = join(directory, 'vmlinuz');
    await copyFile(disk, closedKernel);
    await chmod(closedKernel, 0o600);
    const missing = join(directory, 'missing');
    const cases = [
      [tinySpec(missing), 'HOST_PREREQUISITE', missing],
      [tinySpec(disk, { cdromPath: missing }), 'HOST_PREREQUISITE', missing],
      [
        tinySpec(disk, { kernel: { kernelPath: closedKernel } }),
        'HOST_PREREQUISITE',
        `${closedKernel} is not readable for all users`,
      ],
      [tinySpec(disk, { memoryMiB: 1e9 }), 'QEMU_FAILED', 'memory'],
      [tinySpec(disk, { vcpus: 100_000 }), 'QEMU_FAILED', '100000'],
    ] as const;
    for (const [spec, code, text] of cases) {
      await assert.rejects(hypervisor.start(spec), (error: unknown) => {
        assert.ok(error instanceof Error);
        assert.equal('code' in error && error.code, code);
        assert.ok(error.message.includes(text), error.message);
        return true;
      });
    }
    await assert.rejects(
      createHypervisor(tinyHost(join(directory, 'x'.repeat(80)))).start(tinySpec(disk)),
      { code: 'HOST_PREREQUISITE' },
    );
  });

  test('starts a kernel from a folder that is closed to QEMU', async () => {
    const closed = join(directory, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const kernelPath = join(closed, 'kernel');
    // Not a kernel, but QEMU must have read it to find that out.
    await writeFile(kernelPath, 'not a kernel'.repeat(1000), { mode: 0o644 });
    await assert.rejects(hypervisor.start(tinySpec(disk, { kernel: { kernelPath } })), {
      code: 'QEMU_FAILED',
      message: /invalid kernel header/,
    });
  });

  test('cancels a start when its signal aborts', async () => {
    const reason = new Error('canceled');
    await assert.rejects(
      hypervisor.start(tinySpec(disk), { signal: AbortSignal.abort(reason) }),
      reason,
    );
    const controller = new AbortController();
    const starting = hypervisor.start(tinySpec(disk), { signal: controller.signal });
    setImmediate(() => controller.abort(reason));
    await assert.rejects(starting, reason);
  });

  test('keeps the TAP of a QEMU process while it runs', async () => {
    const namespace = `gnt-test-vm-${process.pid}`;
    const network = createChannelNetwork({ namespace, logger: silentLogger });
    await network.ensureNamespace();
    try {
      const mac = 'aa:00:00:00:05:01';
      const tap = await network.openTap({ ip: '169.254.5.1', mac });
      const nic = { kind: 'tap', fd: tap.fd, device: tap.device, mac, channel: true } as const;
      const machine = await start(tinySpec(disk, { nics: [nic] }));
      tap.close();
      assert.equal(machine.tap, tap.device);
      assert.deepEqual(await network.listTaps(), [tap.device]);
      await machine.kill();
      assert.deepEqual(await network.listTaps(), []);
      await network.releaseTap(tap.device);
    } finally {
      assert.equal(await network.removeNamespace(), true);
      await network.close();
    }
  });

  test("adopts a QEMU process after the daemon is killed, and reports the guest's shutdown", async () => {
    const spec = tinySpec(disk);
    const daemon = spawn(
      process.execPath,
      [join(import.meta.dirname, 'start-and-wait.ts'), vmDir, JSON.stringify(spec)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [pid] = (await once(daemon.stdout, 'data')) as [Buffer];
    const killed = once(daemon, 'exit');
    daemon.kill('SIGKILL');
    await killed;
    await mkdir(join(vmDir, '00000000-0000-4000-8000-000000000000'), { recursive: true });
    // As an earlier release wrote it.
    const file = join(vmDir, spec.uuid, 'machine.json');
    const record = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
    delete record['userNic'];
    await writeFile(file, JSON.stringify(record));

    const successor = newHypervisor();
    const adopted = await successor.adopt();
    assert.equal(adopted.length, 1);
    const [{ machine, meta }] = adopted as [(typeof adopted)[0]];
    machines.push(machine);
    assert.deepEqual(
      { uuid: machine.uuid, pid: machine.pid, meta },
      { uuid: spec.uuid, pid: Number(String(pid)), meta: { role: 'instance' } },
    );
    assert.equal(await machine.readNote(), 'first');
    await machine.writeNote('second');
    assert.equal(await machine.readNote(), 'second');
    assert.deepEqual(readdirSync(vmDir), [spec.uuid]);
    assert.deepEqual(await successor.adopt(), []);
    {
      using console = await openConsole(machine);
      console.write('b');
      await console.sees('b');
    }
    await machine.powerdown();
    const exit = await endOf(machine);
    assert.deepEqual([exit.reason, exit.exitStatus], ['guest-shutdown', null]);
    assert.match(exit.consoleTail, /up\r\n/);
  });

  test('hands its QEMU processes over to a second hypervisor, and reports nothing about them afterwards', async () => {
    const former = newHypervisor();
    const left = await former.start(tinySpec(disk));
    former.letGo();
    await assert.rejects(left.pause(), { code: 'QMP' });
    const [adopted] = await newHypervisor().adopt();
    assert.ok(adopted);
    machines.push(adopted.machine);
    void left.kill();
    // QEMU speaks with one, and it is this one.
    await adopted.machine.pause();
    await adopted.machine.resume();
    await adopted.machine.kill();
    const told = left.exited.then(() => 'told');
    assert.equal(await Promise.race([told, delay(2000, 'silent')]), 'silent');
  });

  test('writes console output of a guest to no file', async () => {
    const machine = await start(tinySpec(disk));
    using console = await openConsole(machine);
    await console.sees('up\r\n');
    console.write('geheim');
    await console.sees('geheim');
    const found = spawnSync('grep', ['-rl', 'geheim', directory], { encoding: 'utf8' });
    assert.equal(found.stdout, '');
    assert.match((await machine.kill()).consoleTail, /geheim/);
  });

  test('adopts a QEMU process whose description is malformed', async () => {
    const machine = await start(tinySpec(disk));
    await writeFile(join(vmDir, machine.uuid, 'machine.json'), '{"version": 2');
    const [adopted, ...others] = await newHypervisor().adopt();
    assert.deepEqual(others, []);
    assert.deepEqual(adopted?.meta, {});
    const { uuid, pid, accelerator } = adopted.machine;
    assert.deepEqual([uuid, pid, accelerator], [machine.uuid, machine.pid, machine.accelerator]);
    await adopted.machine.kill();
    assert.equal((await endOf(machine)).reason, 'host-request');
  });

  test('does not adopt a process whose start time differs from the record', async () => {
    const spec = tinySpec(disk);
    const machine = await start(spec);
    const runDirectory = join(vmDir, spec.uuid);
    const kept = join(directory, 'kept');
    execFileSync('cp', ['-a', runDirectory, kept]);
    await machine.kill();
    execFileSync('cp', ['-a', kept, runDirectory]);
    const stat = readFileSync(`/proc/${process.pid}/stat`, 'utf8').split(' ');
    // This process's pid with another start time.
    stat[21] = '1';
    await writeFile(join(runDirectory, 'process'), stat.join(' '));
    assert.deepEqual(await newHypervisor().adopt(), []);
    assert.equal(existsSync(runDirectory), false);
  });
});
