import { WITHOUT_CORES } from '#shared/sandbox/plan-sandbox.ts';
import type { SystemUser } from '../../host/system-user.ts';

export interface SandboxOptions {
  /** Name of the namespace below /run/netns. */
  readonly networkNamespace: string;
  readonly user: SystemUser;
  /** Folder of the programs. metad sees it read-only. */
  readonly programDir: string;
  /** Folder of metad's sockets. */
  readonly socketDir: string;
  readonly command: string;
  readonly args: readonly string[];
}

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * Folders that the FHS guarantees and metad does not need. A folder that holds the programs or the
 * sockets cannot be covered.
 */
const stages = ['/mnt', '/media', '/opt', '/srv'] as const;

/**
 * An unprivileged user may have no access to the programs and sockets (/root, a private GNT_ROOT).
 * So they are mounted in metad's own mount namespace. `$@` is the command after the five
 * parameters.
 */
const PREPARE = `
set -eu
stage=$1 program=$2 sockets=$3 uid=$4 gid=$5
shift 5
mount -t tmpfs -o mode=755,size=64k,nosuid,nodev,noexec gnt-metad "$stage"
mkdir "$stage/program" "$stage/run"
mount --bind "$program" "$stage/program"
mount -o remount,bind,ro,nosuid,nodev "$stage/program"
mount --bind "$sockets" "$stage/run"
mount -o remount,ro "$stage"
cd /
exec ${WITHOUT_CORES} setpriv --reuid="$uid" --regid="$gid" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all -- "$@"
`;

/**
 * Plans the command that runs metad in the channel's network namespace, with its own mounts, as its
 * user and without capabilities.
 */
export function planMetadCommand(options: SandboxOptions): Command {
  const stage = stages.find((path) =>
    [options.programDir, options.socketDir].every((used) => !isBelow(used, path)),
  );
  if (stage === undefined)
    throw new Error(`there is no mount point for ${options.programDir} in gnt-metad's file system`);
  const toInside = (text: string): string =>
    isBelow(text, options.programDir)
      ? `${stage}/program${text.slice(options.programDir.length)}`
      : text;
  return {
    command: 'nsenter',
    args: [
      `--net=/run/netns/${options.networkNamespace}`,
      '--',
      'unshare',
      '--mount',
      '--propagation=slave',
      '--',
      '/bin/sh',
      '-c',
      PREPARE,
      'gnt-metad',
      stage,
      options.programDir,
      options.socketDir,
      String(options.user.uid),
      String(options.user.gid),
      toInside(options.command),
      ...options.args.map(toInside),
      '--control-socket',
      `${stage}/run/control.sock`,
      '--content-socket',
      `${stage}/run/content.sock`,
    ],
  };
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
