import { execFile, spawn } from 'node:child_process';
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { refusedHostKeys } from '#shared/contract/refused-host-keys.ts';
import type { InstanceInfo } from '#shared/contract/instance.ts';
import { AppError, systemCodeOf, toError } from '#shared/errors/app-error.ts';
import { quoteForShell } from '#shared/process/quote-for-shell.ts';
import { formatFingerprint, formatKnownHosts } from '../../render/host-keys.ts';
import type { Context } from '../../terminal/context.ts';

const SSH_PORT = '22';
/** Default user of a guest that does not report one. */
const DEFAULT_USER = 'root';
/** ssh's own status for a failed connection. */
const NO_CONNECTION = 255;

export interface SshOptions {
  readonly loginName?: string;
  readonly identity?: string;
  readonly port?: string;
  readonly forwardAgent?: boolean;
}

/**
 * Runs ssh and ends with its status.
 * @throws as `withGuest`
 */
export async function runSsh(
  context: Context,
  name: string,
  command: readonly string[],
  options: SshOptions,
): Promise<void> {
  await withGuest(context, name, options, async ({ host, user, trust }) => {
    const words = ['-l', user, '--', host, ...command];
    const status = await runProgram(context, 'ssh', [...trust, ...words]);
    if (status === NO_CONNECTION) context.note(`ssh to ${host} as ${user} failed`);
    context.setExitStatus(status);
  });
}

/**
 * Runs a command in the guest and ends with its status. Arguments arrive unchanged, without another
 * shell expansion. There is no terminal, so that bytes stay unchanged.
 * @throws as `withGuest`
 */
export async function runExec(
  context: Context,
  name: string,
  command: readonly string[],
  options: SshOptions,
): Promise<void> {
  await withGuest(context, name, options, async ({ host, user, trust }) => {
    const words = ['-T', '-l', user, '--', host, command.map(quoteForShell).join(' ')];
    const status = await runProgram(context, 'ssh', [...trust, ...words]);
    if (status === NO_CONNECTION) context.note(`ssh to ${host} as ${user} failed`);
    context.setExitStatus(status);
  });
}

export type CopyDirection = 'push' | 'pull';

/**
 * Copies files with scp in its SFTP mode: in the older mode the guest chooses the names of sent
 * files. Local names may contain colons.
 * @throws as `withGuest`, USAGE, COMMAND_FAILED
 */
export async function runCopy(
  context: Context,
  direction: CopyDirection,
  name: string,
  paths: readonly string[],
  options: SshOptions,
): Promise<void> {
  const [target, ...sources] = paths.toReversed();
  if (target === undefined || sources.length === 0)
    throw new AppError('USAGE', `${direction} requires a source and a target`, {
      hint:
        direction === 'push'
          ? `gnt-instance push ${name} FILE /tmp/`
          : `gnt-instance pull ${name} /etc/hostname .`,
    });
  await withGuest(context, name, options, async ({ host, user, trust }) => {
    const here = (path: string): string =>
      path.endsWith('/') ? `${resolve(path)}/` : resolve(path);
    const there = (path: string): string => `${host}:${path}`;
    const [from, to] = direction === 'push' ? [here, there] : [there, here];
    const words = [...sources.toReversed().map(from), to(target)];
    const status = await runProgram(context, 'scp', [
      ...['-s', '-r', '-q', ...trust, ...sshOption('User', user), '--', ...words],
    ]);
    if (status === 0) return;
    throw new AppError('COMMAND_FAILED', `scp as ${user} failed with status ${status}`, {
      hint: `scp printed the reason above. Check the login with gnt-instance ssh ${host}; scp needs OpenSSH 8.7 or later`,
    });
  });
}

interface Guest {
  readonly host: string;
  readonly user: string;
  /** Options of ssh and scp that restrict them to this guest. */
  readonly trust: readonly string[];
}

/**
 * Prepares the host's own ssh over the channel, with the host keys of the instance's record. No
 * other key is accepted, and ssh never asks. The user's configuration applies, except for ways
 * around this check: an existing master connection and commands that supply keys. The guest can use
 * the agent only if requested.
 * @throws AppError SSH_HOST_KEYS without keys, HOST_PREREQUISITE without ssh
 */
async function withGuest(
  context: Context,
  name: string,
  options: SshOptions,
  act: (guest: Guest) => Promise<void>,
): Promise<void> {
  const client = await context.client();
  const info = await client.ask('GET /v1/instances/{name}', { name });
  const known = formatKnownHosts(info);
  if (known === '') throw noKeys(info);
  warnOfOthers(context, info);
  const file = await openNameless(known);
  try {
    // Use this process's descriptor, because ssh closes inherited ones.
    const knownHosts = `/proc/${process.pid}/fd/${file.fd}`;
    const user = options.loginName ?? info.ssh.user ?? DEFAULT_USER;
    const proxy = [...context.self, 'connect', info.name, options.port ?? SSH_PORT];
    const trust = [
      ...sshOption('ProxyCommand', proxy.map(quoteForShell).join(' ')),
      ...sshOption('UserKnownHostsFile', knownHosts),
      ...sshOption('GlobalKnownHostsFile', '/dev/null'),
      ...sshOption('StrictHostKeyChecking', 'yes'),
      ...sshOption('HostKeyAlias', info.name),
      ...sshOption('CheckHostIP', 'no'),
      ...sshOption('UpdateHostKeys', 'no'),
      ...sshOption('VerifyHostKeyDNS', 'no'),
      ...(await withoutKnownHostsCommand()),
      ...sshOption('ControlMaster', 'no'),
      ...sshOption('ControlPath', 'none'),
      ...sshOption('ForwardAgent', options.forwardAgent ? 'yes' : 'no'),
      ...sshOption('ForwardX11', 'no'),
      ...(options.identity === undefined ? [] : ['-i', options.identity]),
    ];
    await act({ host: info.name, user, trust });
  } finally {
    await file.close();
  }
}

/** Opens an unlinked file with a text, so that no file remains after any end of the command. */
async function openNameless(text: string): Promise<FileHandle> {
  const directory = await mkdtemp(join(tmpdir(), 'gnt-ssh-'));
  try {
    const file = await open(join(directory, 'known_hosts'), 'wx+', 0o600);
    await file.writeFile(text);
    return file;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Prints lines for a known_hosts file, of all instances if no name is given. */
export async function runKnownHosts(context: Context, names: readonly string[]): Promise<void> {
  const client = await context.client();
  const infos =
    names.length === 0
      ? await client.instances()
      : await Promise.all(names.map((name) => client.ask('GET /v1/instances/{name}', { name })));
  for (const info of infos) {
    const lines = formatKnownHosts(info).trimEnd();
    if (lines !== '') context.print(lines);
    else if (names.length > 0) throw noKeys(info);
    warnOfOthers(context, info);
  }
}

export function sshOption(key: string, value: string): string[] {
  // ssh expands percent signs.
  return ['-o', `${key}=${value.replaceAll('%', '%%')}`];
}

/** Returns the option that disables KnownHostsCommand. OpenSSH before 8.5 refuses it as unknown. */
async function withoutKnownHostsCommand(): Promise<string[]> {
  const option = sshOption('KnownHostsCommand', 'none');
  const isUnknown = await promisify(execFile)('ssh', ['-G', '-F', 'none', ...option, 'any']).then(
    () => false,
    ({ stderr }: { readonly stderr?: unknown }) => /bad configuration option/i.test(String(stderr)),
  );
  return isUnknown ? [] : option;
}

/** Runs ssh on the terminal. Keys such as Ctrl-C belong to ssh or the guest. */
async function runProgram(
  context: Context,
  program: string,
  args: readonly string[],
): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit' });
  const release = context.interrupts.take(() => void child.kill('SIGTERM'));
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (status) => resolve(status ?? NO_CONNECTION));
    });
  } catch (error) {
    throw orNotInstalled(error, program);
  } finally {
    release();
  }
}

/** Returns the error of a failed start, with a hint if ssh or scp is missing. */
export function orNotInstalled(error: unknown, program: string): Error {
  if (systemCodeOf(error) !== 'ENOENT') return toError(error);
  return new AppError('HOST_PREREQUISITE', `${program} is not installed on this node`, {
    hint: 'apt-get install openssh-client',
    cause: error,
  });
}

function noKeys({ name, ssh }: InstanceInfo): AppError {
  return new AppError('SSH_HOST_KEYS', `the SSH host keys of ${name} are not known`, {
    hint: `cloud-init reports them at the end of the boot: gnt-instance info ${name}. gnt-instance connect ${name} 22 connects without them`,
    details: { instance: name, ssh },
  });
}

function warnOfOthers(context: Context, { name, ssh }: InstanceInfo): void {
  const refused = refusedHostKeys(ssh);
  if (refused.length === 0) return;
  context.warn(
    `the guest of ${name} reports other SSH host keys: ${refused.map(formatFingerprint).join(', ')}. Trust them with gnt-instance modify --accept-host-keys ${name}`,
  );
}
