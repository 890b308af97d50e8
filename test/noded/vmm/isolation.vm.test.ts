import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { after, afterEach, before, test } from 'node:test';
import { userOf } from '../../../noded/host/process-facts.ts';
import { createHypervisor } from '../../../noded/vmm/hypervisor.ts';
import type { Machine, MachineSpec } from '../../../noded/vmm/machine.ts';
import { attack } from '../../lab/attack-process.ts';
import { machineUsers, tinyHost, tinySpec, writeTinyDisk } from './tiny-guest.ts';

let directory: string;
let vmDir: string;
let disk: string;
const machines: Machine[] = [];

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gnt-test-vm-'));
  vmDir = join(directory, 'run/vm');
  disk = join(directory, 'disk');
  await writeTinyDisk(disk);
});
afterEach(async () => {
  await Promise.all(machines.splice(0).map((machine) => machine.kill()));
});
after(() => rm(directory, { recursive: true }));

async function start(spec: MachineSpec): Promise<Machine> {
  const machine = await createHypervisor(tinyHost(vmDir)).start(spec);
  machines.push(machine);
  return machine;
}

function diskless(): MachineSpec {
  return tinySpec('', { disks: [] });
}

function isYamaOn(): boolean {
  const setting = '/proc/sys/kernel/yama/ptrace_scope';
  return existsSync(setting) && readFileSync(setting, 'utf8').trim() !== '0';
}

test('a QEMU process has its own network namespace with lo only, and its own user', async () => {
  const [first, second] = [await start(tinySpec(disk)), await start(diskless())];
  const namespaces = [first, second].map(({ pid }) => readlinkSync(`/proc/${pid}/ns/net`));
  assert.equal(new Set([...namespaces, readlinkSync('/proc/self/ns/net')]).size, 3);
  const devices = readFileSync(`/proc/${first.pid}/net/dev`, 'utf8');
  assert.deepEqual(
    devices.match(/^ *\S+:/gm)?.map((name) => name.trim()),
    ['lo:'],
  );
  for (const { pid } of [first, second]) {
    assert.equal(userOf(pid), machineUsers.first + pid);
    assert.equal(spawnSync('getent', ['passwd', String(userOf(pid))]).status, 2);
  }
});

test('the user of a QEMU process cannot read memory or descriptors of another QEMU process', async () => {
  const [victim, attacker] = [await start(tinySpec(disk)), await start(diskless())];
  const own = attack(victim.pid, machineUsers.first + victim.pid);
  // What each attack does where it is allowed, or it would prove nothing.
  assert.equal(own['maps'], 'done');
  if (!isYamaOn()) assert.equal(own['descriptor'], 'done');
  assert.deepEqual(attack(victim.pid, machineUsers.first + attacker.pid), {
    ...{ maps: 'EACCES', memory: 'EACCES', descriptors: 'EACCES' },
    ...{ descriptor: 'EPERM', trace: 'EPERM', signal: 'EPERM' },
  });
});

test("a QEMU process with a user-mode NIC runs in the host's network behind a firewall", async () => {
  const calls: string[] = [];
  const note = (call: string) => (uuid?: string) => {
    const isLaunched = uuid !== undefined && existsSync(join(vmDir, uuid, 'process'));
    calls.push(`${call}${isLaunched ? ' beside QEMU' : ''}`);
    return Promise.resolve();
  };
  const wall = {
    ...{ raiseFor: note('raise'), lowerFor: note('lower'), tidy: note('tidy') },
    openFor: (_: string, uid: number) => {
      calls.push(`open ${uid - machineUsers.first}`);
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const nics = [{ kind: 'user', mac: 'aa:00:00:00:05:02' }] as const;
  const hypervisor = createHypervisor({ ...tinyHost(vmDir), wall });
  const machine = await hypervisor.start(tinySpec(disk, { nics }));
  machines.push(machine);
  assert.equal(readlinkSync(`/proc/${machine.pid}/ns/net`), readlinkSync('/proc/self/ns/net'));
  assert.notEqual(readlinkSync(`/proc/${machine.pid}/ns/ipc`), readlinkSync('/proc/self/ns/ipc'));
  assert.equal(userOf(machine.pid), machineUsers.first + machine.pid);
  assert.deepEqual(calls, ['raise', `open ${machine.pid}`]);
  await machine.kill();
  await turn();
  assert.deepEqual(calls.splice(0), ['raise', `open ${machine.pid}`, 'lower']);
  await assert.rejects(hypervisor.start(tinySpec(disk, { nics, memoryMiB: 1e9 })));
  assert.deepEqual(calls.splice(0), ['raise', 'lower beside QEMU']);
  const confined = [{ ...nics[0], isPublicOnly: true }];
  await (await hypervisor.start(tinySpec(disk, { nics: confined }))).kill();
  await turn();
  assert.deepEqual(calls.splice(0), ['raise', 'lower'], 'it is not opened');

  const spec = JSON.stringify(tinySpec(disk, { nics }));
  const words = [join(import.meta.dirname, 'start-and-wait.ts'), vmDir, spec];
  const daemon = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(daemon.stdout, 'data');
  const killed = once(daemon, 'exit');
  daemon.kill('SIGKILL');
  await killed;
  const [adopted] = await createHypervisor({ ...tinyHost(vmDir), wall }).adopt();
  const opened = `open ${adopted?.machine.pid ?? ''}`;
  assert.deepEqual(calls.splice(0), [opened, 'raise beside QEMU', 'tidy']);
  await adopted?.machine.kill();
  await turn();
  assert.deepEqual(calls, ['lower']);
});
