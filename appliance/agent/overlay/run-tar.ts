import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, realpathSync, rmdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { KEPT_NAMESPACES } from './left-out.ts';
import { endedBySignal, signalOf } from '../process/command.ts';
import { PERL, planConfineCommand } from '../process/held-namespace.ts';

/** The dynamic loader of each architecture, where every Debian has it. */
const loaders: Readonly<Record<string, string>> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
};

/**
 * How archives are unpacked (tar(1)). Links may be absolute since the root is the target. Warnings
 * are of no use to anybody, except that an attribute could not be set: data would be lost.
 */
export const TAR_OPTIONS = [
  ...['--extract', '--file=-', '--absolute-names', '--numeric-owner', '--same-owner'],
  ...['--same-permissions', '--keep-directory-symlink', '--xattrs', '--acls'],
  ...KEPT_NAMESPACES.map((namespace) => `--xattrs-include=${namespace}*`),
  ...['--selinux', '--warning=none', '--warning=xattr-write', '--quoting-style=escape'],
  '--blocking-factor=128',
];

/** How much of what it complains of is read: the beginning. */
const MAX_COMPLAINT_LENGTH = 8192;

/** GNU tar, unpacking what is written into it. */
export interface RunningTar {
  readonly input: Writable;
  /**
   * Resolves when it has ended, with what it complained of first, a warning included, or null.
   * @throws AppError COMMAND_FAILED when it did not even start; PACKAGE_INVALID when it was ended
   */
  readonly ended: Promise<string | null>;
  /** Ends tar at once. */
  kill(): void;
}

/**
 * Starts GNU tar with `rootPath` as its root, without network and without the capabilities and
 * system calls that it can do without. The system's programs are laid over an empty directory in
 * there, in a mount namespace that ends with tar: whatever links an archive or an image has, every
 * path is resolved in that root. It ends with its first complaint: what came before it stays.
 * @throws AppError DISK_FULL when not even an empty directory can be made
 */
export function startTar(rootPath: string): RunningTar {
  const loader = realpathSync(loaders[process.arch] ?? '');
  // Nobody can have a name ready that leads there.
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
    // No locale, zone or user database of the guest is asked for anything.
    { env: { LC_ALL: 'C', TZ: 'UTC0' }, stdio: ['pipe', 'ignore', 'pipe'] },
  );
  let said = '';
  let isKilled = false;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < MAX_COMPLAINT_LENGTH) said += text;
    if (firstComplaint(said) !== null) child.kill('SIGKILL');
  });
  // It may end before it has read everything; why is known when it has ended.
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

/** Of tar that has ended without a word of its own. */
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

/** The dynamic loader may have something to say as well; a line of tar's begins with its name. */
function firstComplaint(said: string): string | null {
  return /^tar: (.*)\n/m.exec(said)?.[1] ?? null;
}
