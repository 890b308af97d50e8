import { spawnSync } from 'node:child_process';

const MARK = 'GNT_TEST_OWN_NETWORK';
/** Separates links, rules, sysctls, mounts and names of namespaces from the host's. */
const ENTER = [
  'mount -t sysfs sysfs /sys',
  'mount -t tmpfs -o mode=755 tmpfs /run',
  'mkdir /run/netns',
  'ip link set lo up',
  'exec "$@"',
].join(' && ');

/** Tells whether this process has a separate network already. */
export function hasOwnNetwork(): boolean {
  return process.env[MARK] !== undefined;
}

/** Runs a test file again in a separate network. @returns the error, or null */
export function runInOwnNetwork(file: string): string | null {
  const namespaces = ['--net', '--mount', '--propagation=private'];
  const ended = spawnSync(
    'unshare',
    [...namespaces, 'sh', '-ec', ENTER, 'sh', process.execPath, '--test', file],
    { encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: undefined, [MARK]: '1' } },
  );
  return ended.status === 0 ? null : `${ended.stdout}\n${ended.stderr}`;
}
