import { mkdirSync } from 'node:fs';
import { runCommand } from '../command.ts';

const BASE = '/run/gnt/overlay';
/** The appliance's system as a script sees it: read-only image below, RAM above. */
export const WRITABLE_ROOT = `${BASE}/root`;

/** Lays RAM over the read-only root, for scripts; the agent itself needs only /run and /tmp. Done when a script needs it, since it costs boot time. */
export async function prepareWritableRoot(): Promise<void> {
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
  for (const name of ['dev', 'proc', 'sys', 'run', 'tmp'])
    await runCommand('mount', ['--rbind', `/${name}`, `${WRITABLE_ROOT}/${name}`]);
}
