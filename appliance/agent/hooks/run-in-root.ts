import { readlinkSync } from 'node:fs';
import { TargetRoot } from '../disks/target-root.ts';
import type { ProgramEnd } from '#shared/process/run-in-group.ts';
import { runLogged } from '../scripts/run-logged.ts';
import type { StageReporter } from '../report/stage.ts';

/** Where a step's programs run. */
export interface StepRoot {
  readonly path: string;
  /** The instance's own system: it has no /dev, /proc and /sys of its own, and what its programs leave running must end. */
  readonly isInstance: boolean;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * In namespaces of their own, so that processes and mounts end with the program. The places were found by walking inside the root:
 * a link there cannot lead these mounts elsewhere.
 */
const ENTER = `/usr/bin/mount --rbind /dev "$1"
/usr/bin/mount -t proc proc "$2"
/usr/bin/mount --rbind /sys "$3"
root=$4
shift 4
exec /usr/sbin/chroot "$root" "$@"`;

/** Runs a program with this root as its own. */
export async function runInRoot(
  root: StepRoot,
  program: readonly string[],
  log: StageReporter['log'],
): Promise<ProgramEnd> {
  if (!root.isInstance)
    return runLogged('/usr/sbin/chroot', [root.path, ...program], root.environment, log);
  const places = ['dev', 'proc', 'sys'].map((name) => realPath(root.path, name));
  return runLogged(
    '/usr/bin/unshare',
    [
      ...['--mount', '--pid', '--fork', '--kill-child=KILL', '/bin/sh', '-euc', ENTER, 'sh'],
      ...[...places, root.path, ...program],
    ],
    root.environment,
    log,
  );
}

function realPath(rootPath: string, name: string): string {
  const held = new TargetRoot(rootPath).openDirectory([name], { create: true });
  try {
    return readlinkSync(held.path);
  } finally {
    held.close();
  }
}
