import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, realpathSync, rmdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { KEPT_NAMESPACES } from './left-out.ts';
import { endedBySignal, signalOf } from '../process/command.ts';
import { PERL, planConfineCommand } from '../process/held-namespace.ts';

/** Debian's path of the dynamic loader, by architecture. */
const loaders: Readonly<Record<string, string>> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
};

/**
 * Options of tar(1). Links may be absolute since the root is the target. Warnings are disabled,
 * except for attributes that cannot be set, which would be lost.
 */
export const TAR_OPTIONS = [
  ...['--extract', '--file=-', '--absolute-names', '--numeric-owner', '--same-owner'],
  ...['--same-permissions', '--keep-directory-symlink', '--xattrs', '--acls'],
  ...KEPT_NAMESPACES.map((namespace) => `--xattrs-include=${namespace}*`),
  ...['--selinux', '--warning=none', '--warning=xattr-write', '--quoting-style=escape'],
  '--blocking-factor=128',
];

const MAX_COMPLAINT_LENGTH = 8192;

export interface RunningTar {
  readonly input: Writable;
  /**
   * Resolves at its end with its first message, warnings included, or null.
   * @throws AppError COMMAND_FAILED when it did not start; PACKAGE_INVALID when a signal ended it
   */
  readonly ended: Promise<string | null>;
  kill(): void;
}

/**
 * Starts GNU tar with `rootPath` as its root, without network and without unneeded capabilities and
 * system calls. The appliance's programs are mounted on an empty directory in the root, in a mount
 * namespace that ends with tar, so that every path of an archive or image resolves in the root. Tar
 * ends at its first message. Earlier entries stay.
 * @throws AppError DISK_FULL when an empty directory cannot be created
 */
export function startTar(rootPath: string): RunningTar {
  const loader = realpathSync(loaders[process.arch] ?? '');
  // A random name, which no link can anticipate.
  const tools = `.gnt-${randomUUID()}`;
  const toolsPath = `${rootPath}/${tools}`;
  makeToolsDirectory(toolsPath);
  const inside = (path: string): string => `/${tools}${path.replace(/^\/usr/, '')}`;
  const child = spawn(
    PERL,
    [
      ...planConfineCommand('unpack', tools, '0', '', rootPath, '', '', ''),
      ...[inside(loader), '--argv0', 'tar', '--inhibit-cache'],
      ...['--library-path', inside(dirname(loader)), inside('/usr/bin/tar'), ...TAR_OPTIONS],
    ],
    // Prevents reading locales, zones and users of the guest.
    { env: { LC_ALL: 'C', TZ: 'UTC0' }, stdio: ['pipe', 'ignore', 'pipe'] },
  );
  let said = '';
  let isKilled = false;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < MAX_COMPLAINT_LENGTH) said += text;
    if (firstComplaint(said) !== null) child.kill('SIGKILL');
  });
  // Tar may end before reading everything. Its end has the reason.
  child.stdin.on('error', () => undefined);
  const ended = new Promise<string | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) => {
      const complaint = firstComplaint(`${said}\n`);
      if (status === 0 || complaint !== null) resolve(complaint);
      else if (isKilled) resolve(`tar was killed`);
      else reject(refuseEnd(said, signal ?? signalOf(status ?? 0)));
    });
  }).finally(() => rmdirSync(toolsPath));
  const kill = (): void => {
    isKilled = true;
    child.kill('SIGKILL');
  };
  return { input: child.stdin, ended, kill };
}

function refuseEnd(said: string, signal: string | undefined): AppError {
  if (signal !== undefined)
    return new AppError(
      'PACKAGE_INVALID',
      `tar cannot unpack the package: ${endedBySignal(signal)}`,
      {
        hint: 'Create it again with: tar -C DIR -czf x.tar.gz .',
      },
    );
  const [reason = ''] = said.trim().split('\n');
  return new AppError('COMMAND_FAILED', `the appliance cannot start tar: ${reason.slice(0, 500)}`, {
    hint: 'The package is not the cause. Rebuild the appliance: gnt-appliance build',
  });
}

function makeToolsDirectory(path: string): void {
  try {
    mkdirSync(path, 0o700);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOSPC') throw error;
    throw new AppError('DISK_FULL', 'no space left for the personalization package', {
      cause: error,
      hint: 'Give the instance a larger disk, or use a smaller package.',
    });
  }
}

/** Skips messages of the dynamic loader; tar's lines begin with its name. */
function firstComplaint(said: string): string | null {
  return /^tar: (.*)\n/m.exec(said)?.[1] ?? null;
}
