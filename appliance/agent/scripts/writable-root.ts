import { mkdirSync, readFileSync } from 'node:fs';
import { runCommand } from '../process/command.ts';

const BASE = '/run/gnt/overlay';
/** The appliance's system as a script sees it: read-only image below, RAM above. */
export const WRITABLE_ROOT = `${BASE}/root`;

/**
 * Lays RAM over the read-only root, for scripts and hooks; the agent itself needs only /run and /tmp. Done when the first of them needs
 * it, since it costs boot time. What is mounted below /run later, the instance among it, is seen in there too, and goes there too.
 */
export async function prepareWritableRoot(): Promise<void> {
  if (readFileSync('/proc/self/mounts', 'utf8').includes(` ${WRITABLE_ROOT} `)) return;
  for (const name of ['upper', 'work', 'root']) mkdirSync(`${BASE}/${name}`, { recursive: true });
  // A module for loop devices is not loaded by itself: losetup looks for its node first.
  await runCommand('modprobe', ['-a', 'overlay', 'loop']);
  await runCommand('mount', [
    '-t',
    'overlay',
    '-o',
    `lowerdir=/,upperdir=${BASE}/upper,workdir=${BASE}/work`,
    'overlay',
    WRITABLE_ROOT,
  ]);
  await runCommand('mount', ['--make-shared', '/run']);
  for (const name of ['dev', 'proc', 'sys', 'run', 'tmp'])
    await runCommand('mount', ['--rbind', `/${name}`, `${WRITABLE_ROOT}/${name}`]);
}
