import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  readBootId,
  readParentIdentity,
  readProcessIdentity,
} from '../../../noded/host/process-identity.ts';
import { planFenced } from '../../../noded/vmm/fence-script.ts';
import { planSandbox } from '#shared/sandbox/plan-sandbox.ts';

let dir = '';
let fence: ChildProcess | undefined;
let said: Promise<unknown[]> | undefined;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gnt-fence-'));
});
afterEach(async () => {
  fence?.kill('SIGKILL');
  await rm(dir, { recursive: true, force: true });
});

const uptimeS = (): number => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
const lease = (pauseInS: number, endInS = pauseInS + 1000, boot = readBootId()): Promise<void> => {
  const times = [pauseInS, endInS].map((s) => Math.floor(uptimeS() + s));
  return writeFile(join(dir, 'lease'), `${boot} ${times.join(' ')}\n`);
};

/** A program that counts stands for QEMU. */
async function start(): Promise<number> {
  const identityFile = join(dir, 'process');
  const command = planSandbox({
    ...{ firstUid: 2_100_000_000, group: null, hasHostNetwork: true, identityFile },
    ...{ diesWithParent: true, command: ['/bin/sh', '-c', 'while :; do echo x; sleep 0.05; done'] },
  });
  const [file = '', ...args] = planFenced(join(dir, 'lease'), readBootId(), command);
  fence = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  said = fence.stderr?.toArray();
  for (;;) {
    const line = await readFile(identityFile, 'latin1').catch(() => '');
    if (line !== '') return Number(line.split(' ')[0]);
    assert.equal(fence.exitCode, null);
    await sleep(20);
  }
}

/** Counts context switches, of which a paused program has none. */
const countSwitches = (pid: number): number =>
  Number(
    /^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1],
  );

const stateOf = (pid: number): string => {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1] ?? '';
  } catch {
    return '';
  }
};

async function until(pid: number, is: (state: string) => boolean): Promise<void> {
  for (let left = 400; !is(stateOf(pid)); left -= 1) {
    assert.ok(left > 0, `it is still ${stateOf(pid)}`);
    await sleep(50);
  }
}
const paused = (state: string): boolean => state === 'T';
const goesOn = (state: string): boolean => state !== 'T' && state !== '';

test('a program is paused when the lease runs out, and continues when it is renewed', async () => {
  await lease(8);
  const pid = await start();
  assert.ok(goesOn(stateOf(pid)));
  await until(pid, paused);
  await lease(60);
  await until(pid, goesOn);
});

test('a program is killed when the lease is not renewed before its kill time', async () => {
  await lease(3, 5);
  const pid = await start();
  await until(pid, (state) => state === '');
  assert.ok(fence !== undefined);
  if (fence.exitCode === null) await once(fence, 'exit');
  assert.equal(fence.exitCode, 137);
});

test('a program whose lease file is removed is paused, and killed at the kill time of the last lease', async () => {
  await lease(60, 4);
  const pid = await start();
  await rm(join(dir, 'lease'));
  await until(pid, paused);
  await until(pid, (state) => state === '');
});

test('a program is paused while its lease is of another boot, malformed or missing', async () => {
  await lease(60);
  const pid = await start();
  for (const spoil of [
    () => lease(60, 900, '00000000-0000-4000-8000-000000000000'),
    () => writeFile(join(dir, 'lease'), `${readBootId()} 99999999`),
    () => writeFile(join(dir, 'lease'), `${readBootId()} 99999999\n`),
    () => writeFile(join(dir, 'lease'), `${readBootId()}\n`),
    () => writeFile(join(dir, 'lease'), `${readBootId()} 9${'9'.repeat(30)} 9${'9'.repeat(30)}\n`),
    () => writeFile(join(dir, 'lease'), `${readBootId()} 0 0x10\n`),
    () => writeFile(join(dir, 'lease'), ''),
    () => rm(join(dir, 'lease')),
  ]) {
    await spoil();
    await until(pid, paused);
    await lease(60);
    await until(pid, goesOn);
  }
});

test('a paused program that gets SIGCONT is paused again', async () => {
  await lease(3);
  const pid = await start();
  await until(pid, paused);
  const before = countSwitches(pid);
  process.kill(pid, 'SIGCONT');
  // Its state may be that of the next pause already.
  while (countSwitches(pid) === before) await sleep(10);
  await until(pid, paused);
});

test('the children of the fence have ended when the fence exits', async () => {
  await lease(60);
  const pid = await start();
  assert.ok(fence?.pid !== undefined);
  const of = fence.pid;
  assert.equal(readParentIdentity(pid)?.pid, of);
  let children: readonly string[] = [];
  while (children.length < 2) {
    children = readFileSync(`/proc/${of}/task/${of}/children`, 'latin1').trim().split(' ');
    await sleep(10);
  }
  const ended = once(fence, 'exit');
  process.kill(pid, 'SIGKILL');
  await ended;
  assert.deepEqual(children.map((child) => stateOf(Number(child))).join(''), '');
});

test('a program is not started with an expired lease', async () => {
  await lease(-1);
  await assert.rejects(start());
  assert.match(String(await said), /lease has run out/);
});

test('a program ends when its fence is killed', async () => {
  await lease(60);
  const pid = await start();
  assert.notEqual(readProcessIdentity(pid), undefined);
  fence?.kill('SIGKILL');
  await until(pid, (state) => state === '' || state === 'Z');
});
