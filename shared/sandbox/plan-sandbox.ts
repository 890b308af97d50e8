import { NO_CORE_BYTES } from '../sys/forbid-cores.ts';

/**
 * Default of the first user of sandboxed programs. No tool assigns such numbers: adduser ends at
 * 60,000, systemd's containers at 1,879,048,191, SSSD and FreeIPA at 2,000,200,000, subordinate ids
 * at 600,100,000.
 */
export const DEFAULT_FIRST_POWERLESS_UID = 2_100_000_000;

export interface SandboxLaunch {
  readonly command: readonly string[];
  /** User and group are this number plus the process' own, which no living process shares. */
  readonly firstUid: number;
  /** Its only supplementary group. */
  readonly group: number | null;
  /** Whether it uses the host's network; otherwise it gets an empty one. */
  readonly hasHostNetwork: boolean;
  /**
   * Whether it is killed when its parent ends. GNT_PARENT of its environment has the parent's
   * number.
   */
  readonly diesWithParent?: boolean;
  /** Receives the process' line of /proc/<pid>/stat. */
  readonly identityFile?: string;
}

/**
 * The beginning of a shell script that writes the process' line of /proc/<pid>/stat to the file of
 * its first argument, and keeps the others.
 */
export const NOTE_IDENTITY = [
  'umask 077',
  'read -r stat <"/proc/$$/stat"; echo "$stat" >"$1"; shift',
] as const;
/** Prefix of a command that must leave no core dump, which would contain its memory. */
export const WITHOUT_CORES = `prlimit --core=${NO_CORE_BYTES}:${NO_CORE_BYTES} --`;

/**
 * Returns a command that notes its identity (number and start time survive the execs), forbids core
 * dumps, gives up all privileges of root and becomes the program.
 */
export function planSandbox(launch: SandboxLaunch): readonly [string, ...string[]] {
  const { firstUid, group, hasHostNetwork, identityFile = '/dev/null' } = launch;
  const isolate = `unshare ${hasHostNetwork ? '' : '--net '}--ipc -- `;
  const groups = group === null ? '--clear-groups' : `--groups=${group}`;
  // A parent that ended before this call sends no signal.
  const dying = `--pdeathsig KILL -- /bin/sh -c '[ "$PPID" = "$GNT_PARENT" ] || exit 1; unset GNT_PARENT; exec "$@"' sh "$@"`;
  const become = launch.diesWithParent === true ? dying : '-- "$@"';
  const script = [
    ...NOTE_IDENTITY,
    `id=$((${firstUid} + $$)); unset PWD`,
    `exec ${WITHOUT_CORES} ${isolate}setpriv --reuid=$id --regid=$id ${groups} --inh-caps=-all --bounding-set=-all --no-new-privs ${become}`,
  ];
  return ['/bin/sh', '-c', script.join('\n'), 'sh', identityFile, ...launch.command];
}
