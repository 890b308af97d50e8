import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { hashFile } from '#shared/files/hash-file.ts';
import { run } from '#shared/process/run.ts';
import { BASE_COMMANDS } from '#shared/process/host-commands.ts';
import { type DebianRoot, makeDebianRoot } from './debian-root.ts';
import { requireCommands } from './require-commands.ts';
import type { MirrorOptions } from './debian-tree.ts';

const baseDescription = z.strictObject({
  kernelVersion: z.string(),
  packages: z.array(z.string()),
  sourceDateSeconds: z.number(),
  modules: z.array(z.tuple([z.string(), z.array(z.string())])),
  tarSha256: z.string(),
  kernelSha256: z.string(),
});

export interface BaseOptions {
  /** Folder of the cached base. */
  readonly directory: string;
  /** An empty directory on the same file system. */
  readonly workDir: string;
  readonly mirror: MirrorOptions;
  readonly force: boolean;
  readonly step: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Unpacks the Debian part of the appliance at `rootPath`, from the cache when it is intact, else
 * from the mirror. It is cached apart from the agent, which changes much more often.
 */
export async function provideBase(options: BaseOptions, rootPath: string): Promise<DebianRoot> {
  if (!options.force) {
    const cached = await unpackBase(options, rootPath);
    if (cached) return cached;
  }
  options.step(`installing Debian packages from ${options.mirror.sources[0] ?? ''}`);
  await requireCommands(BASE_COMMANDS);
  const root = await makeDebianRoot(rootPath, options.mirror, options.signal);
  options.step('keeping the Debian part for the next build');
  await keepBase(options, rootPath, root);
  return root;
}

async function unpackBase(options: BaseOptions, rootPath: string): Promise<DebianRoot | null> {
  const { directory } = options;
  const text = await readFile(join(directory, 'base.json'), 'utf8').catch(() => null);
  if (text === null) return null;
  const tar = join(directory, 'root.tar');
  try {
    const parsed = baseDescription.parse(JSON.parse(text));
    const kernel = join(directory, 'vmlinuz');
    if (
      (await hashFile(tar)) !== parsed.tarSha256 ||
      (await hashFile(kernel)) !== parsed.kernelSha256
    )
      throw new Error('checksum');
    options.step('unpacking the Debian part from the build cache');
    await mkdir(rootPath);
    await run(
      'tar',
      ['--numeric-owner', '--xattrs', '--xattrs-include=*', '-C', rootPath, '-xpf', tar],
      {
        timeoutMs: 10 * 60_000,
        signal: options.signal,
      },
    );
    return { ...parsed, modules: new Map(parsed.modules), bzImage: await readFile(kernel) };
  } catch {
    options.signal.throwIfAborted();
    options.step('the Debian part in the build cache is damaged: building it again');
    await rm(rootPath, { recursive: true, force: true });
    await rm(directory, { recursive: true, force: true });
    return null;
  }
}

async function keepBase(options: BaseOptions, rootPath: string, root: DebianRoot): Promise<void> {
  const made = join(options.workDir, 'base');
  await mkdir(made);
  const tar = join(made, 'root.tar');
  await run(
    'tar',
    [
      '--sort=name',
      '--numeric-owner',
      '--xattrs',
      '--xattrs-include=*',
      '-C',
      rootPath,
      '-cf',
      tar,
      '.',
    ],
    {
      timeoutMs: 10 * 60_000,
      signal: options.signal,
    },
  );
  await writeFile(join(made, 'vmlinuz'), root.bzImage);
  const description: z.infer<typeof baseDescription> = {
    kernelVersion: root.kernelVersion,
    packages: [...root.packages],
    sourceDateSeconds: root.sourceDateSeconds,
    modules: [...root.modules].map(([path, needs]) => [path, [...needs]]),
    tarSha256: await hashFile(tar),
    kernelSha256: await hashFile(join(made, 'vmlinuz')),
  };
  await writeFile(join(made, 'base.json'), JSON.stringify(description));
  await rm(options.directory, { recursive: true, force: true });
  await rename(made, options.directory);
}
