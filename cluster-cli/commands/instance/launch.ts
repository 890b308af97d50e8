import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ClusterInfo } from '#shared/contract/api.ts';
import { instanceName } from '#shared/contract/primitives.ts';
import { AppError, systemCodeOf } from '#shared/errors/app-error.ts';
import { GIB, MIB } from '#shared/units/bytes.ts';
import { formatBytes } from '../../render/format.ts';
import type { Context } from '../../terminal/context.ts';
import { parseSizeBytes } from '../../values/size.ts';
import { submitAndWatch } from '../submit.ts';
import { type AddOptions, composeAdd } from './add.ts';
import { type ChosenImage, chooseImage, refuseSmallDisk } from './named-image.ts';
import { readSshKeys, warnOfSilence } from './parse-documents.ts';
import { readUserDefaults, type UserDefaults } from './user-defaults.ts';
import { refuseWaitWithout, waitReady } from './wait-ready.ts';

export interface LaunchOptions extends Omit<AddOptions, 'osImage' | 'install'> {
  /** commander's name of `--no-wait`, inverted. */
  readonly wait: boolean;
}

/** Default without an option, a user's setting or a cluster's setting. */
const DEFAULT_NET = '0:mode=user';
/** Defaults that mean instances without NICs. */
const NO_NICS = new Set(['no-nics', 'none']);
const DEFAULT_DISK_BYTES = 10 * GIB;
const DEFAULT_WAIT_S = 600;
const AGENT_TIMEOUT_MS = 5000;

/**
 * Adds an instance with defaults for interactive use. Options rank first, then the user's file, the
 * cluster's settings and the built-in defaults.
 */
export async function runLaunch(
  context: Context,
  image: string,
  name: string,
  options: LaunchOptions,
): Promise<void> {
  refuseSwapped(image, name);
  const isSilent = !options.start || options.submit === true || options.dryRun === true;
  const others = { '--no-start': !options.start, '--no-wait': !options.wait };
  refuseWaitWithout(options, others, options.wait);
  const client = await context.client();
  const defaults = await readUserDefaults(join(homedir(), '.config/gnt/config.yaml'));
  const cluster = await client.ask('GET /v1/cluster');
  const keys = await findKeys(context, options, defaults);
  const named = await chooseImage(context, image);
  const { c, communication = c ?? true, ...rest } = options;
  const checksum = options.osImageChecksum ?? named.checksum;
  const opcode = await composeAdd(context, name, {
    ...rest,
    ...chooseMachine(options, defaults, cluster),
    install: true,
    osImage: named.source,
    ...(checksum !== undefined && { osImageChecksum: checksum }),
    communication,
    sshKey: [],
  });
  refuseSmallDisk(image, named, opcode.disks);
  const disks =
    opcode.disks?.length === 0 && opcode.diskTemplate !== 'diskless'
      ? [{ sizeBytes: readDisk(context, image, chooseDisk(defaults, cluster, named.minDiskBytes)) }]
      : opcode.disks;
  const silence = warnOfSilence(opcode, context);
  const job = await submitAndWatch(context, { ...opcode, disks, sshKeys: [...keys] }, options);
  if (job === null || isSilent) return;
  if (options.wait)
    await waitReady(
      context,
      name,
      options.waitReady ?? DEFAULT_WAIT_S,
      options.degradedFails,
      silence,
    );
  if (!options.json) context.note(`log in: gnt-instance ssh ${chooseLogin(options, named)}${name}`);
}

/** Returns the image's user for the hint, or nothing if user data may define another user. */
function chooseLogin({ userData }: LaunchOptions, { user }: ChosenImage): string {
  return userData !== undefined || user == null ? '' : `-l ${user} `;
}

/**
 * Refuses a name in the place of the image, before looking up the image.
 * @throws AppError USAGE
 */
function refuseSwapped(image: string, name: string): void {
  const hint = 'The image is the first argument: gnt-instance launch debian/12 web1';
  if (image === '') throw new AppError('USAGE', 'the name of the image is empty', { hint });
  const { error } = instanceName.safeParse(name);
  if (error === undefined) return;
  throw new AppError('USAGE', `name: '${name}': ${error.issues[0]?.message ?? ''}`, { hint });
}

/** Returns the options with NICs, memory and processors; given values stay. Pure. */
export function chooseMachine(
  options: Pick<LaunchOptions, 'net' | 'nics' | 'backendParameters'>,
  { net, memory, vcpus }: UserDefaults,
  { launchDefaults = {} }: Pick<ClusterInfo, 'launchDefaults'>,
): Pick<AddOptions, 'net' | 'backendParameters'> {
  const memoryMiB = memory ?? (launchDefaults.memoryMiB && `${launchDefaults.memoryMiB}M`);
  const processors = vcpus ?? launchDefaults.vcpus;
  const chosen = net ?? launchDefaults.net;
  const nic = chosen === undefined ? DEFAULT_NET : `0:${chosen}`;
  return {
    net: options.net ?? (options.nics && !NO_NICS.has(chosen ?? '') ? [nic] : []),
    // Later values override earlier ones.
    backendParameters: [
      ...(memoryMiB === undefined ? [] : [`memory=${memoryMiB}`]),
      ...(processors === undefined ? [] : [`vcpus=${processors}`]),
      ...(options.backendParameters ?? []),
    ],
  };
}

/** Returns the default size, and the size to use: at least as large as the image needs. Pure. */
export function chooseDisk(
  { size }: UserDefaults,
  { launchDefaults = {} }: Pick<ClusterInfo, 'launchDefaults'>,
  leastBytes: number | null = 0,
): { readonly defaultBytes: number; readonly sizeBytes: number } {
  const defaultBytes =
    size === undefined
      ? (launchDefaults.diskBytes ?? DEFAULT_DISK_BYTES)
      : parseSizeBytes('size of ~/.config/gnt/config.yaml', size);
  const sizeBytes = Math.ceil(Math.max(defaultBytes, leastBytes ?? 0) / MIB) * MIB;
  return { defaultBytes, sizeBytes };
}

/**
 * Returns the size in bytes. Prints a note if the catalogue requires a larger disk than the
 * default.
 */
function readDisk(
  context: Context,
  image: string,
  { defaultBytes, sizeBytes }: ReturnType<typeof chooseDisk>,
): number {
  if (sizeBytes - defaultBytes >= MIB)
    context.note(
      `the disk has ${formatBytes(sizeBytes)}: ${image} requires more than the default of ${formatBytes(defaultBytes)} (-s SIZE sets the size)`,
    );
  return sizeBytes;
}

/**
 * Returns public keys for the login: from the options, else from the user's file, else all keys of
 * ~/.ssh and of the SSH agent.
 * @throws AppError VALIDATION without keys and without user data
 */
async function findKeys(
  context: Context,
  options: Pick<LaunchOptions, 'sshKey' | 'userData'>,
  { ssh_keys: own }: UserDefaults,
): Promise<readonly string[]> {
  const files = options.sshKey ?? own?.map((file) => file.replace(/^~(?=\/)/, homedir()));
  if (files !== undefined) return readSshKeys(files, context.values);
  const folder = join(homedir(), '.ssh');
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const found = names
    .filter((file) => file.endsWith('.pub') && !file.endsWith('-cert.pub'))
    .toSorted()
    .map((file) => join(folder, file));
  const keys = [...readEach(context, found), ...(await keysOfAgent())].filter(isNoCertificate);
  // A key in both places counts once, whatever its comment.
  const byKey = new Map(keys.map((key) => [key.split(' ').slice(0, 2).join(' '), key]));
  if (byKey.size > 0 || options.userData !== undefined) return [...byKey.values()];
  throw new AppError(
    'VALIDATION',
    `no login is possible: no public key in ${folder} and none in an SSH agent`,
    {
      hint: 'Create a key with ssh-keygen -t ed25519, or give --ssh-key FILE, or --user-data FILE with users',
    },
  );
}

/**
 * Tells whether a line is a plain key. A certificate cannot be authorized; its key is listed
 * itself.
 */
function isNoCertificate(key: string): boolean {
  return !/^\S+-cert-v\d+@openssh\.com /.test(key);
}

/** Reads keys and skips unreadable files with a warning. */
function readEach(context: Context, files: readonly string[]): string[] {
  return files.flatMap((file) => {
    try {
      return [...readSshKeys([file], context.values)];
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      context.warn(`${file} is skipped: ${error.message}`);
      return [];
    }
  });
}

async function keysOfAgent(): Promise<string[]> {
  try {
    const { stdout } = await promisify(execFile)('ssh-add', ['-L'], { timeout: AGENT_TIMEOUT_MS });
    return stdout.split('\n').filter((line) => /^(ssh|ecdsa|sk)-\S+ AAAA/.test(line));
  } catch {
    // No agent, an empty agent, or no ssh-add: no keys.
    return [];
  }
}
