import { readdir, readFile } from 'node:fs/promises';
import { run } from '#shared/process/run.ts';
import type { Lab } from '../../scripts/demo/lab.ts';
import { findWrongMachines, type ToldMachine } from './find-machines.ts';

/** Of a network's daemon its operations know whether it has to be there. */
const DAEMON = /(noded|metad)\/main\.|dnsmasq/;

/**
 * What an operation that has ended must not leave while its node goes on: processes but the two
 * daemons, TAPs, mounts, run directories, locks of the image cache; but for machines that run. The
 * file system that its disks may be on is not its own.
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

/** What a node without instances must not have besides: disks, install logs, partial downloads. */
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
