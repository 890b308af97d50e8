import { NO_CORE_BYTES } from '../sys/forbid-cores.ts';

/**
 * The first user of programs that have no power, where nobody chose another. Nobody gives out
 * numbers from here on: adduser ends at 60,000, systemd's containers at 1,879,048,191, SSSD and
 * FreeIPA at 2,000,200,000, subordinate ids at 600,100,000.
 */
export const DEFAULT_FIRST_POWERLESS_UID = 2_100_000_000;

export interface SandboxLaunch {
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** Its user and group is this number plus its process' own, which no living process shares. */
  readonly firstUid: number;
  /** Its only supplementary group. */
  readonly group: number | null;
  /** Its sockets are the host's own; otherwise it has a network of its own, with nothing in it. */
  readonly hasHostNetwork: boolean;
  /** It is killed when its parent ends, whose number is GNT_PARENT of its environment. */
  readonly diesWithParent?: boolean;
  /** Gets the process' line of /proc/<pid>/stat. */
  readonly identityFile?: string;
}

/**
 * The beginning of a shell's script whose first argument is a file: it gets the process' line of
 * /proc/<pid>/stat, and the arguments behind it stay.
 */
export const NOTE_IDENTITY = [
  'umask 077',
  'read -r stat <"/proc/$$/stat"; echo "$stat" >"$1"; shift',
] as const;
/** Stands before a command that is to leave no core dump, which would hold its memory. */
export const WITHOUT_CORES = `prlimit --core=${NO_CORE_BYTES}:${NO_CORE_BYTES} --`;

/**
 * The command that notes who it is (the process' number and its start survive the execs), forbids
 * core dumps, which would hold its memory, gives up everything that root has and becomes the
 * program.
 */
export function planSandbox(launch: SandboxLaunch): readonly [string, ...string[]] {
  const { firstUid, group, hasHostNetwork, identityFile = '/dev/null' } = launch;
  const isolate = `unshare ${hasHostNetwork ? '' : '--net '}--ipc -- `;
  const groups = group === null ? '--clear-groups' : `--groups=${group}`;
  // A parent that ended before the signal was set sends none.
  const dying = `--pdeathsig KILL -- /bin/sh -c '[ "$PPID" = "$GNT_PARENT" ] || exit 1; unset GNT_PARENT; exec "$@"' sh "$@"`;
  const become = launch.diesWithParent === true ? dying : '-- "$@"';
  const script = [
    ...NOTE_IDENTITY,
    `id=$((${firstUid} + $$)); unset PWD`,
    `exec ${WITHOUT_CORES} ${isolate}setpriv --reuid=$id --regid=$id ${groups} --inh-caps=-all --bounding-set=-all --no-new-privs ${become}`,
  ];
  return ['/bin/sh', '-c', script.join('\n'), 'sh', identityFile, ...launch.command];
}
