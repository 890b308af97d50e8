import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const FED_LIMIT_MS = 10_000;
const SETTING = '/proc/sys/kernel/core_pattern';

/** Cores that the kernel pipes to a program. Disposing restores the host's setting. */
export interface FedCores extends Disposable {
  /** Contains a file for each crash, named after its process. */
  readonly directory: string;
}

/**
 * Makes the kernel pipe cores to a program, as for systemd-coredump and apport. A core limit of
 * zero does not prevent this: the function crashes one process with that limit to check.
 * @returns null in a container, which cannot change the setting or would run the host's programs
 */
export async function feedCoresToProgram(root: string): Promise<FedCores | null> {
  const directory = join(root, 'cores');
  const program = join(root, 'take-core');
  await mkdir(directory);
  await writeFile(program, `#!/bin/sh\nexec /bin/cat >${directory}/$1\n`, { mode: 0o755 });
  const former = readFileSync(SETTING, 'utf8');
  const restore = (): void => {
    process.off('exit', restore);
    writeFileSync(SETTING, former);
  };
  try {
    writeFileSync(SETTING, `|${program} %p`);
  } catch {
    return null;
  }
  process.once('exit', restore);
  if (await isFed(directory)) return { directory, [Symbol.dispose]: restore };
  restore();
  return null;
}

async function isFed(directory: string): Promise<boolean> {
  const planted = randomBytes(20).toString('hex');
  const env = { ...process.env, PLANTED: planted };
  const child = spawn('prlimit', ['--core=0:0', 'sleep', '60'], { env });
  await once(child, 'spawn');
  // Wait for the exec: before it, the core would be this process's.
  while (!(await readFile(`/proc/${child.pid}/comm`, 'utf8')).startsWith('sleep')) await sleep(20);
  const ended = once(child, 'exit');
  child.kill('SIGSEGV');
  await ended;
  const core = join(directory, String(child.pid));
  // The kernel does not wait for the program.
  const deadlineMs = performance.now() + FED_LIMIT_MS;
  let isThere = false;
  while (!isThere && performance.now() < deadlineMs) {
    await sleep(20);
    isThere = (await readFile(core).catch(() => Buffer.alloc(0))).includes(planted);
  }
  await rm(core, { force: true });
  return isThere;
}
