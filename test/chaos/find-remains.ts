import { readdir, readFile } from 'node:fs/promises';
import { run } from '#shared/process/run.ts';
import type { Lab } from '../../scripts/demo/lab.ts';

const DAEMON = /(noded|metad)\/main\./;

/**
 * What an operation that has ended must not leave while its node goes on: processes but the two
 * daemons, TAPs, mounts, run directories, locks of the image cache.
 */
export async function findRemains(lab: Lab): Promise<readonly string[]> {
  const { paths } = lab;
  const others = (await lab.processes()).filter(({ command }) => !DAEMON.test(command));
  const links = await run('ip', ['netns', 'exec', paths.networkNamespace, 'ip', '-br', 'link']);
  const mounts = await readFile('/proc/self/mounts', 'utf8');
  const linesOf = (text: string, part: string): string[] =>
    text.split('\n').filter((line) => line.includes(part));
  return [
    ...others.map(({ pid, command }) => `process ${pid}: ${command}`),
    ...linesOf(links.stdout, 'gnt.com').map((line) => `TAP ${line}`),
    ...linesOf(mounts, paths.root).map((line) => `mount ${line}`),
    ...(await entries(paths.vmDir)).map((name) => `run directory ${name}`),
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
