import { chmod, copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ApplianceManifest } from '#shared/contract/appliance-manifest.ts';
import type { HookFile } from '#shared/contract/hooks.ts';
import { AppError, isAppError, messageOf } from '#shared/errors/app-error.ts';
import { readKeptHooks } from '#shared/files/read-kept-hooks.ts';
import { BUILD_COMMANDS } from '#shared/process/host-commands.ts';
import { run } from '#shared/process/run.ts';
import { bundleAgent, bundleHooks } from './agent-bundle.ts';
import { makeSnapshot } from './agent-snapshot.ts';
import { provideBase } from './base.ts';
import { EMULATED_KERNEL_ARGUMENTS, KERNEL_ARGUMENTS, MEMORY_MIB } from './contents.ts';
import { buildInitramfs } from './initramfs.ts';
import type { MirrorOptions } from './debian-tree.ts';
import { hashBaseInputs, hashInputs } from './inputs.ts';
import { installAppliance } from './install-appliance.ts';
import { acquireLock } from './lock.ts';
import { describeFile, MANIFEST_NAME, verifyAppliance } from './manifest.ts';
import { keepHooks } from './own-hooks.ts';
import { requireCommands } from './require-commands.ts';
import { extractVmlinux } from './vmlinux.ts';

export interface BuildOptions {
  /** Folder of the finished appliance: `<root>/var/lib/gnt/appliance`. */
  readonly applianceDir: string;
  /** Build cache, shared by all roots of this machine. */
  readonly cacheDir: string;
  readonly mirror: MirrorOptions;
  readonly nodePath: string;
  /** Hooks of the appliance; absent: none. */
  readonly hooks?: {
    /** File that keeps them for later builds. */
    readonly keptIn: string;
    /** Replaces the kept hooks. */
    readonly given?: readonly HookFile[];
  };
  /** Builds from the mirror and ignores the cache. */
  readonly force: boolean;
  readonly step: (text: string) => void;
  readonly signal: AbortSignal;
}

const WORK_PREFIX = '.building-';

/**
 * Puts an intact appliance into `applianceDir`, from the build cache or built. Builds of one cache
 * are serialized. Each build removes left-overs of killed builds.
 * @throws AppError APPLIANCE_BUILD with the step that failed, HOST_PREREQUISITE
 */
export async function buildAppliance(options: BuildOptions): Promise<ApplianceManifest> {
  const { cacheDir, step, signal } = options;
  await mkdir(cacheDir, { recursive: true });
  const [agentBundle, hooksBundle] = await Promise.all([bundleAgent(), bundleHooks()]);
  const inputsHash = await hashInputs({
    agentBundle,
    hooksBundle,
    nodePath: options.nodePath,
    sources: options.mirror.sources,
  });
  const lock = await acquireLock(join(cacheDir, 'appliance.lock'), {
    onWait: () => step('waiting for another build'),
    signal,
  });
  try {
    await removeStaleWork(cacheDir);
    const hooks = await settleHooks(options.hooks);
    const cached = join(cacheDir, `appliance-${inputsHash}`);
    if (options.force || !(await isIntact(cached, step))) {
      await buildIntoCache(options, { agentBundle, hooksBundle, inputsHash, cached });
      await removeOthers(cacheDir, [
        basename(cached),
        `appliance-base-${await hashBaseInputs(options.mirror.sources)}`,
      ]);
    }
    const what = hooks.length > 0 ? `with ${hooks.length} hook document(s) ` : '';
    step(`installing ${what}into ${options.applianceDir}`);
    return await installAppliance(cached, options.applianceDir, hooks);
  } finally {
    await lock.release();
  }
}

async function settleHooks(hooks: BuildOptions['hooks']): Promise<readonly HookFile[]> {
  if (hooks === undefined) return [];
  if (hooks.given === undefined) return readKeptHooks(hooks.keptIn, 'APPLIANCE_BUILD');
  await keepHooks(hooks.keptIn, hooks.given);
  return hooks.given;
}

interface BuildKey {
  readonly agentBundle: Buffer;
  readonly hooksBundle: Buffer;
  readonly inputsHash: string;
  readonly cached: string;
}

async function isIntact(directory: string, step: (text: string) => void): Promise<boolean> {
  try {
    await verifyAppliance(directory);
    step('the build cache has an intact copy of this appliance');
    return true;
  } catch (error) {
    if (!isAppError(error)) throw error;
    if (error.code === 'APPLIANCE_CORRUPT') step(`the build cache is damaged (${error.message})`);
    return false;
  }
}

async function buildIntoCache(options: BuildOptions, key: BuildKey): Promise<void> {
  // Checked before hundreds of packages are downloaded.
  await requireCommands(BUILD_COMMANDS);
  const workDir = join(options.cacheDir, `${WORK_PREFIX}${process.pid}`);
  await mkdir(workDir);
  try {
    const output = await build(options, key, workDir);
    await rm(key.cached, { recursive: true, force: true });
    await rename(output, key.cached);
  } catch (error) {
    options.signal.throwIfAborted();
    if (isAppError(error, 'HOST_PREREQUISITE')) throw error;
    throw new AppError('APPLIANCE_BUILD', `cannot build the appliance: ${messageOf(error)}`, {
      cause: error,
      hint: 'Check that the host reaches a Debian mirror (--mirror URL) and has 1 GiB of free disk space.',
    });
  } finally {
    // Children of a killed program may end a moment after it.
    await rm(workDir, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** @returns the directory with the finished files */
async function build(options: BuildOptions, key: BuildKey, workDir: string): Promise<string> {
  const { step, signal } = options;
  const rootPath = join(workDir, 'root');
  const output = join(workDir, 'appliance');
  await mkdir(output);
  const baseKey = await hashBaseInputs(options.mirror.sources);
  const base = await provideBase(
    {
      directory: join(options.cacheDir, `appliance-base-${baseKey}`),
      workDir,
      mirror: options.mirror,
      force: options.force,
      step,
      signal,
    },
    rootPath,
  );
  step('adding Node and the agent');
  await addAgent(rootPath, options, key);
  const vmlinux = await extractVmlinux(base.bzImage, workDir);
  if (vmlinux === null)
    step('the bzImage contains no uncompressed kernel, so the appliance boots the bzImage');
  await writeFile(join(output, 'vmlinuz'), vmlinux ?? base.bzImage);
  await writeFile(
    join(output, 'initrd.img'),
    await buildInitramfs(rootPath, base.kernelVersion, base.modules),
  );
  step('packing the root file system');
  await packRoot(rootPath, join(output, 'root.squashfs'), base.sourceDateSeconds, signal);
  step('writing the manifest');
  const manifest: ApplianceManifest = {
    version: 1,
    inputsHash: key.inputsHash,
    architecture: process.arch === 'arm64' ? 'aarch64' : 'x86_64',
    kernelVersion: base.kernelVersion,
    sourceDate: new Date(base.sourceDateSeconds * 1000).toISOString(),
    kernelArguments: `${KERNEL_ARGUMENTS} GNT_AGENT_VERSION=${key.inputsHash.slice(0, 12)}`,
    emulatedKernelArguments: EMULATED_KERNEL_ARGUMENTS,
    memoryMiB: MEMORY_MIB,
    kernel: await describeFile(output, 'vmlinuz'),
    initrd: await describeFile(output, 'initrd.img'),
    root: await describeFile(output, 'root.squashfs'),
    packages: [...base.packages],
    hooks: [],
  };
  await writeFile(join(output, MANIFEST_NAME), `${JSON.stringify(manifest, null, 1)}\n`);
  // QEMU runs as another user.
  await chmod(output, 0o755);
  for (const name of await readdir(output)) await chmod(join(output, name), 0o644);
  return output;
}

async function addAgent(rootPath: string, options: BuildOptions, key: BuildKey): Promise<void> {
  const directory = join(rootPath, 'opt/gnt');
  const node = join(directory, 'node');
  await copyFile(options.nodePath, node);
  await chmod(node, 0o755);
  await run('strip', ['--strip-all', node]);
  const snapshot = await makeSnapshot(key.agentBundle, directory, options.signal);
  await writeFile(join(directory, 'agent.blob'), snapshot, { mode: 0o644 });
  await writeFile(join(directory, 'hooks.cjs'), key.hooksBundle, { mode: 0o644 });
  // Mount point of the appliance's own hooks.
  await mkdir(join(directory, 'hooks'));
}

const MKSQUASHFS_TIMEOUT_MS = 10 * 60_000;

/**
 * Stored uncompressed, since every installation reads these files and decompression would take a
 * large part of its time: Node, the agent, libraries, and the tools for image and package.
 */
const UNCOMPRESSED = [
  'opt/gnt/*',
  'usr/bin/perl',
  'usr/bin/qemu-img',
  'usr/bin/tar',
  'usr/lib/*-linux-gnu/lib*.so*',
];

/** Packs the root tree, other files with zstd. Equal tree and date make equal bytes. */
async function packRoot(
  rootPath: string,
  outputPath: string,
  sourceDateSeconds: number,
  signal: AbortSignal,
): Promise<void> {
  await run(
    'mksquashfs',
    [
      rootPath,
      outputPath,
      '-noappend',
      '-no-progress',
      '-quiet',
      ...['-comp', 'zstd', '-Xcompression-level', '6', '-b', '131072'],
      ...['-mkfs-time', String(sourceDateSeconds), '-all-time', String(sourceDateSeconds)],
      ...UNCOMPRESSED.flatMap((path) => ['-action', `uncompressed@pathname(${path})`]),
      '-noI',
      '-reproducible',
    ],
    { timeoutMs: MKSQUASHFS_TIMEOUT_MS, signal },
  );
}

async function removeStaleWork(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (name.startsWith(WORK_PREFIX))
      await rm(join(cacheDir, name), { recursive: true, force: true });
  }
}

/** Removes other versions: the cache holds one appliance and one Debian part. */
async function removeOthers(cacheDir: string, kept: readonly string[]): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    if (/^appliance-(base-)?[0-9a-f]{64}$/.test(name) && !kept.includes(name))
      await rm(join(cacheDir, name), { recursive: true, force: true });
  }
}
