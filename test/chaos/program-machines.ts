import { readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../scripts/demo/lab.ts';
import { addOs, infoOf, submit, succeed } from '../e2e/support/ask-nodes.ts';
import { hasExited } from './ask-at-point.ts';
import { isOfMachine, listMachines } from './find-machines.ts';
import { findRemains } from './find-remains.ts';
import { findViolations } from './find-violations.ts';
import { armTrap, callsOf, findThread, type KillPoint } from './kill-at-call.ts';
import { createPointScene, ONE, OS, settled } from './point-scene.ts';
import type { ProgramOperation } from './program-points.ts';

/** Limit for the start of a guest: QEMU takes seconds on a busy host. */
const LIMIT_MS = 60_000;
const LOOK_MS = 50;
const OTHER_BOOT = 'another-boot\n';

/**
 * Returns operations of the daemon without a job: it starts instances after a reboot of the host,
 * leaves them running when it stops, and finds them again.
 */
export function machineOperations(lab: Lab): readonly ProgramOperation[] {
  let isMade = false;
  const make = async (): Promise<void> => {
    if (isMade) return;
    await lab.startNode();
    await addOs(lab, OS, ['exit 0']);
    await succeed(lab, 'gnt-os', 'trust', OS);
    const machine = { beparams: { memoryMiB: 32 }, hvparams: { accel: 'tcg' } };
    const { create } = createPointScene(lab);
    await submit(lab, create(ONE, { communication: true, start: true, ...machine }));
    isMade = true;
  };
  return [autostart(lab, make), daemonStop(lab, make), daemonStart(lab, make)];
}

function autostart(lab: Lab, make: () => Promise<void>): ProgramOperation {
  return {
    name: 'autostart after a reboot',
    calls: [
      ...callsOf('loop', 'fsync', 'writev', 'clone', 'sendmsg', 'ioctl'),
      ...callsOf('files', 'fsync', 'mkdir', 'rename', 'unlink', 'ioctl'),
    ],
    strike: async (point) => {
      await make();
      await reboot(lab);
      const isHurt = await startUntil(lab, point, () => isUp(lab));
      if (isHurt) await lab.startNode();
      const wrong = await judge(lab);
      if ((await readFile(lab.paths.bootFile, 'utf8')) === OTHER_BOOT)
        wrong.push('the next daemon would start it again');
      return { isHurt, wrong };
    },
  };
}

function daemonStop(lab: Lab, make: () => Promise<void>): ProgramOperation {
  return {
    name: 'stop of a daemon',
    calls: [
      ...callsOf('loop', 'fsync', 'write', 'writev', 'clone'),
      ...callsOf('files', 'unlink', 'rmdir'),
    ],
    strike: async (point) => {
      await make();
      const pid = await up(lab);
      const node = lab.node();
      const trap = await armTrap(node.pid ?? 0, point);
      await lab.stopNode();
      await trap.disarm();
      await lab.startNode();
      return { isHurt: node.signalCode === 'SIGKILL', wrong: await judge(lab, pid) };
    },
  };
}

function daemonStart(lab: Lab, make: () => Promise<void>): ProgramOperation {
  return {
    name: 'start with a machine that runs',
    calls: [
      ...callsOf('loop', 'fsync', 'write', 'writev', 'clone'),
      ...callsOf('files', 'fsync', 'mkdir', 'rename', 'unlink'),
    ],
    strike: async (point) => {
      await make();
      const pid = await up(lab);
      await lab.stopNode();
      const isHurt = await startUntil(lab, point, () => Promise.resolve(true));
      if (isHurt) await lab.startNode();
      return { isHurt, wrong: await judge(lab, pid) };
    },
  };
}

/** Simulates a reboot: ends all processes and removes `/run`. */
async function reboot(lab: Lab): Promise<void> {
  await lab.stopNode();
  for (const { pid } of await lab.processes()) process.kill(pid, 'SIGKILL');
  while ((await lab.processes()).length > 0) await sleep(LOOK_MS);
  await rm(lab.paths.runDir, { recursive: true, force: true });
  await writeFile(lab.paths.bootFile, OTHER_BOOT);
}

/** @returns true when the daemon was killed, false when it reached the expected state */
async function startUntil(
  lab: Lab,
  point: KillPoint,
  isThere: () => Promise<boolean>,
): Promise<boolean> {
  const starting = lab.startNode().then(
    () => true,
    () => false,
  );
  const node = lab.node();
  const pid = node.pid ?? 0;
  while (!hasExited(node) && findThread(pid, point.thread) === undefined) await sleep(1);
  const trap = hasExited(node) ? undefined : await armTrap(pid, point).catch(() => undefined);
  const deadlineMs = performance.now() + LIMIT_MS;
  if (await starting)
    while (
      !hasExited(node) &&
      performance.now() < deadlineMs &&
      !(await isThere().catch(() => false))
    )
      await sleep(LOOK_MS);
  await trap?.disarm();
  return node.signalCode === 'SIGKILL';
}

async function isUp(lab: Lab): Promise<boolean> {
  if ((await infoOf(lab, ONE)).running === null) return false;
  // The daemon writes the boot id after all attempts to start instances.
  return (await readFile(lab.paths.bootFile, 'utf8')) !== OTHER_BOOT;
}

/** Starts the instance if necessary. @returns the pid of its QEMU process */
async function up(lab: Lab): Promise<number> {
  const running = async (): Promise<number | undefined> => (await infoOf(lab, ONE)).running?.pid;
  const pid = await running();
  if (pid !== undefined) return pid;
  await submit(lab, { opcode: 'INSTANCE_STARTUP', name: ONE });
  return (await running()) ?? 0;
}

/** @param pid of the QEMU process that must still run; without it any process is fine */
async function judge(lab: Lab, pid?: number): Promise<string[]> {
  const found = await settled(async () => {
    const machines = await listMachines(lab);
    const guest = machines.length === 1 && (pid === undefined || machines[0]?.pid === pid);
    return [
      ...(guest ? [] : [`machines: ${machines.map((one) => one.pid).join() || 'none'}`]),
      ...(await findViolations(lab.paths)).filter((text) => !isOfMachine(text, machines)),
      ...(await findRemains(lab, machines)),
    ];
  }, LIMIT_MS);
  return [...found];
}
