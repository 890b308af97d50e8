import { readdir, readFile } from 'node:fs/promises';
import { run } from '#shared/process/run.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { findWrongMachines, type ToldMachine } from './find-machines.ts';

/** Each network operation checks dnsmasq itself. */
const DAEMON = /(noded|metad)\/main\.|dnsmasq/;

/**
 * Finds leftovers of a finished operation on a running node: processes besides the daemons, TAPs,
 * mounts, run directories and locks of the image cache. Leftovers of running instances do not
 * count, nor does the mounted file system for disks.
 */
export async function findRemains(
  lab: Lab,
  machines: readonly ToldMachine[] = [],
): Promise<readonly string[]> {
  const { paths } = lab;
  const processes = await lab.processes();
  const others = processes.filter(
    ({ pid, command }) => !DAEMON.test(command) && machines.every((machine) => machine.pid !== pid),
  );
  const links = await run('ip', ['netns', 'exec', paths.networkNamespace, 'ip', '-br', 'link']);
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  const linesOf = (text: string, part: string): string[] =>
    text.split('\n').filter((line) => line.includes(part));
  return [
    ...others.map(({ pid, command }) => `process ${pid}: ${command}`),
    ...linesOf(links.stdout, 'gnt.com')
      .filter((line) => machines.every(({ tap }) => tap === null || !line.startsWith(`${tap} `)))
      .map((line) => `TAP ${line}`),
    ...linesOf(mounts, paths.root)
      .filter((line) => !line.includes(` ${paths.disksDir} `))
      .map((line) => `mount ${line}`),
    ...(await entries(paths.vmDir))
      .filter((name) => machines.every(({ uuid }) => uuid !== name))
      .map((name) => `run directory ${name}`),
    ...(await findWrongMachines(lab, machines, processes)),
    ...(await entries(paths.imageCacheDir))
      .filter((name) => name.endsWith('.lock'))
      .map((name) => `lock ${name}`),
  ];
}

/** Finds further leftovers on a node without instances: disks, install logs, partial downloads. */
export async function findRemainsOfInstances({ paths }: Lab): Promise<readonly string[]> {
  const [disks, logs, images] = await Promise.all(
    [paths.disksDir, paths.logDir, paths.imageCacheDir].map(entries),
  );
  return [
    ...(disks ?? []).map((name) => `disk ${name}`),
    ...(logs ?? []).filter((name) => name.startsWith('install-')).map((name) => `log ${name}`),
    ...(images ?? [])
      .filter((name) => name.startsWith('partial-'))
      .map((name) => `partial download ${name}`),
  ];
}

async function entries(dir: string): Promise<readonly string[]> {
  return readdir(dir).catch((): string[] => []);
}
